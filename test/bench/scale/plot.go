package main

import (
	"bytes"
	"fmt"
	"math"
)

// panel is one diagram: a value that grows with the number of providers.
type panel struct {
	title string
	value func(sample) float64
	// base is a second line, lower than value; nil for none.
	base func(sample) float64
}

var panels = []panel{
	{"memory: peak and settled, MB", func(s sample) float64 { return megabytes(s.peak) }, func(s sample) float64 { return megabytes(s.settled) }},
	{"time until all are Ready, s", func(s sample) float64 { return s.took.Seconds() }, nil},
	{"processor time, s", func(s sample) float64 { return s.cpu.Seconds() }, nil},
	{"requests to the API server", func(s sample) float64 { return float64(s.allRequests()) }, nil},
}

// Sizes of the picture, in pixels.
const (
	panelWidth, panelHeight = 420.0, 270.0
	marginLeft, marginTop   = 56.0, 34.0
	plotWidth, plotHeight   = panelWidth - marginLeft - 24, panelHeight - marginTop - 34
)

// drawSamples draws the growth as SVG: a dashed straight line leads from the first sample to the last.
func drawSamples(samples []sample) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n", 2*panelWidth, 2*panelHeight)
	fmt.Fprintln(&out, `<rect width="100%" height="100%" fill="white"/>`)
	for i, p := range panels {
		fmt.Fprintf(&out, `<g transform="translate(%.0f %.0f)">`+"\n", float64(i%2)*panelWidth, float64(i/2)*panelHeight) //nolint:staticcheck // rows are whole
		p.draw(&out, samples)
		fmt.Fprintln(&out, "</g>")
	}
	fmt.Fprintln(&out, "</svg>")
	return out.Bytes()
}

func (p panel) draw(out *bytes.Buffer, samples []sample) {
	last := samples[len(samples)-1]
	step := niceStep(p.value(last) / 4)
	top := math.Ceil(p.value(last)/step) * step
	x := func(providers int) float64 { return marginLeft + plotWidth*float64(providers)/float64(last.providers) }
	y := func(value float64) float64 { return marginTop + plotHeight*(1-value/top) }
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
	}
	text(marginLeft, marginTop-14, "start", p.title)
	for value := 0.0; value <= top; value += step {
		fmt.Fprintf(out, `<path d="M%.1f %.1fh%.1f" stroke="#ddd"/>`+"\n", marginLeft, y(value), plotWidth)
		text(marginLeft-6, y(value)+4, "end", fmt.Sprintf("%g", value))
	}
	for _, s := range samples {
		if s.providers >= last.providers/10 { // the others would lie upon each other
			text(x(s.providers), marginTop+plotHeight+16, "middle", fmt.Sprint(s.providers))
		}
	}
	first := samples[0]
	fmt.Fprintf(out, `<path d="M%.1f %.1fL%.1f %.1f" stroke="#999" stroke-dasharray="4"/>`+"\n", x(first.providers), y(p.value(first)), x(last.providers), y(p.value(last)))
	for _, line := range []struct {
		value  func(sample) float64
		colour string
	}{{p.value, "#1f6fb4"}, {p.base, "#59a14f"}} {
		if line.value == nil {
			continue
		}
		points := ""
		for _, s := range samples {
			points += fmt.Sprintf("%.1f,%.1f ", x(s.providers), y(line.value(s)))
			fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(s.providers), y(line.value(s)), line.colour)
		}
		fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", points, line.colour)
	}
}

// niceStep is the smallest of 1, 2 and 5 times a power of ten that is not below a value.
func niceStep(value float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(value, 1e-3))))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= value {
			return factor * power
		}
	}
	return 10 * power
}
