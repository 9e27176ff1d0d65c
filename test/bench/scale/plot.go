package main

import (
	"bytes"
	"fmt"
	"math"
)

// panel is a diagram of values that grow with the number of providers.
type panel struct {
	title string
	lines []func(sample) float64 // no more than there are colors
}

var colors = []string{"#1f6fb4", "#59a14f"}

var panels = []panel{
	{"memory, MiB: peak (blue) and settled (green)", []func(sample) float64{
		func(s sample) float64 { return mebibytes(s.peak) }, func(s sample) float64 { return mebibytes(s.settled) },
	}},
	{"the operator's processor time, s", []func(sample) float64{func(s sample) float64 { return s.cpu.Seconds() }}},
	{"requests (blue), writes among them (green)", []func(sample) float64{
		func(s sample) float64 { return float64(s.allRequests()) }, func(s sample) float64 { return float64(s.writes) },
	}},
	{"time until Ready (blue), API server's processor time (green), s", []func(sample) float64{
		func(s sample) float64 { return s.took.Seconds() }, func(s sample) float64 { return s.serverCPU },
	}},
}

// Dimensions of the picture, in pixels.
const (
	panelWidth, panelHeight = 420.0, 270.0
	marginLeft, marginTop   = 56.0, 34.0
	plotWidth, plotHeight   = panelWidth - marginLeft - 24, panelHeight - marginTop - 34
)

// draw draws the growth as SVG. Dashed lines connect the first and the last sample.
func draw(samples []sample) []byte {
	out := &bytes.Buffer{}
	fmt.Fprintf(
		out,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n",
		2*panelWidth,
		2*panelHeight,
	)
	fmt.Fprintln(out, `<rect width="100%" height="100%" fill="white"/>`)

	for i, p := range panels {
		column, row := i%2, i/2
		fmt.Fprintf(out, `<g transform="translate(%.0f %.0f)">`+"\n", float64(column)*panelWidth, float64(row)*panelHeight)
		p.draw(out, samples)
		fmt.Fprintln(out, "</g>")
	}

	fmt.Fprintln(out, "</svg>")

	return out.Bytes()
}

func (p panel) draw(out *bytes.Buffer, samples []sample) {
	last := samples[len(samples)-1]

	highest := 0.0
	for _, line := range p.lines {
		highest = max(highest, line(last))
	}

	step := niceStep(highest / 4)
	top := math.Ceil(highest/step) * step
	x := func(s sample) float64 { return marginLeft + plotWidth*float64(s.providers)/float64(last.providers) }
	y := func(value float64) float64 { return marginTop + plotHeight*(1-value/top) }
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
	}
	text(marginLeft, marginTop-14, "start", p.title)

	for i := range int(math.Round(top/step)) + 1 {
		value := float64(i) * step
		fmt.Fprintf(out, `<path d="M%.1f %.1fh%.1f" stroke="#ddd"/>`+"\n", marginLeft, y(value), plotWidth)
		text(marginLeft-6, y(value)+4, "end", fmt.Sprintf("%.6g", value))
	}

	for _, s := range samples {
		if s.providers >= last.providers/10 { // the other labels would overlap
			text(x(s), marginTop+plotHeight+16, "middle", fmt.Sprint(s.providers))
		}
	}

	for i, line := range p.lines {
		points, first := "", samples[0]
		for _, s := range samples {
			points += fmt.Sprintf("%.1f,%.1f ", x(s), y(line(s)))
			fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(s), y(line(s)), colors[i])
		}

		fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", points, colors[i])
		fmt.Fprintf(
			out,
			`<path d="M%.1f %.1fL%.1f %.1f" stroke="#999" stroke-dasharray="4"/>`+"\n",
			x(first),
			y(line(first)),
			x(last),
			y(line(last)),
		)
	}
}

// niceStep returns the smallest of 1, 2 and 5 times a power of ten that is not below a value.
func niceStep(value float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(value, 1e-3))))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= value {
			return factor * power
		}
	}

	return 10 * power
}
