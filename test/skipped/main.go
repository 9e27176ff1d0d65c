// Command skipped prints which tests of a run were skipped, and why. Its arguments are files that
// `go test -json` or a suite of Ginkgo (with a JSON report) has written.
package main

import (
	"fmt"
	"os"
)

func main() {
	skips := reasons{}

	for _, file := range os.Args[1:] {
		data, err := os.ReadFile(file)
		if err == nil {
			err = skips.read(data)
		}

		if err != nil {
			fmt.Fprintf(os.Stderr, "skipped: %s: %v\n", file, err)
			os.Exit(1)
		}
	}

	fmt.Print(skips)
}
