package main

import "fmt"

// panel is a diagram of values that grow with the number of providers.
type panel struct {
	title string
	lines []func(sample) float64 // no more than there are colors
}

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
	out := newPicture(2*panelWidth, 2*panelHeight)

	for i, p := range panels {
		column, row := i%2, i/2
		out.at(float64(column)*panelWidth, float64(row)*panelHeight, func() { p.draw(out, samples) })
	}

	return out.bytes()
}

func (p panel) draw(out *picture, samples []sample) {
	first, last := samples[0], samples[len(samples)-1]

	highest := 0.0
	for _, line := range p.lines {
		highest = max(highest, line(last))
	}

	scale := newAxis(highest)
	at := func(s sample, value float64) [2]float64 {
		return [2]float64{
			marginLeft + plotWidth*float64(s.providers)/float64(last.providers), marginTop + plotHeight*(1-value/scale.top),
		}
	}

	out.text(marginLeft, marginTop-14, start, p.title)

	for _, value := range scale.labels() {
		y := at(last, value)[1]
		out.bar("#ddd", marginLeft, y, plotWidth, 1)
		out.text(marginLeft-6, y+4, end, fmt.Sprintf("%.6g", value))
	}

	for _, s := range samples {
		if s.providers >= last.providers/10 { // the other labels would overlap
			out.text(at(s, 0)[0], marginTop+plotHeight+16, middle, fmt.Sprint(s.providers))
		}
	}

	for i, line := range p.lines {
		points := make([][2]float64, 0, len(samples))

		for _, s := range samples {
			point := at(s, line(s))
			points = append(points, point)
			out.dot(colors[i], point[0], point[1])
		}

		out.line(colors[i], false, points...)
		out.line("#999", true, at(first, line(first)), at(last, line(last)))
	}
}
