package main

import (
	"fmt"
	"strconv"
	"strings"
)

// sizesOf returns the numbers in the flag -sizes, which must ascend.
func sizesOf(list string) ([]int, error) {
	var sizes []int

	for _, text := range strings.Split(list, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 || len(sizes) > 0 && size <= sizes[len(sizes)-1] {
			return nil, fmt.Errorf("-sizes %s: write ascending numbers with commas between them", list)
		}

		sizes = append(sizes, size)
	}

	return sizes, nil
}
