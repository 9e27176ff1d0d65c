package main

import (
	"fmt"
	"slices"
)

// Range is the median of some values, with the smallest and the largest. The zero value is the range of no values.
type Range struct {
	Median, Min, Max float64
	Count            int
}

// newRange returns the range of values. The median of an even number of values is the mean of the two in the middle.
func newRange(values []float64) Range {
	n := len(values)
	if n == 0 {
		return Range{}
	}

	sorted := slices.Sorted(slices.Values(values))

	return Range{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], Count: n}
}

// ratios returns the range of the ratios of pairs: values[i] divided by baselines[i]. What has no partner, and pairs
// whose baseline is 0, are left out.
func ratios(values, baselines []float64) Range {
	var ratios []float64

	for i := range min(len(values), len(baselines)) {
		if baselines[i] != 0 {
			ratios = append(ratios, values[i]/baselines[i])
		}
	}

	return newRange(ratios)
}

// String returns the median with a number of decimal places, and the smallest and the largest value unless they look
// the same.
func (r Range) String(places int) string {
	if r.Count == 0 {
		return ""
	}

	text := func(value float64) string { return fmt.Sprintf("%.*f", places, value) }
	if text(r.Min) == text(r.Max) {
		return text(r.Median)
	}

	return fmt.Sprintf("%s (%s–%s)", text(r.Median), text(r.Min), text(r.Max))
}
