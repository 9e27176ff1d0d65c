package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
)

// colors are those of the lines of a diagram, in their order.
var colors = []string{"#1f6fb4", "#59a14f"}

// picture is an SVG picture that is being drawn. Its coordinates are pixels.
type picture struct{ out bytes.Buffer }

// newPicture returns an empty picture.
func newPicture(width, height float64) *picture {
	p := &picture{}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`,
		width, height)
	p.printf(`<rect width="100%%" height="100%%" fill="white"/>`)

	return p
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// at draws what a function draws, moved to a place.
func (p *picture) at(x, y float64, draw func()) {
	p.printf(`<g transform="translate(%.0f %.0f)">`, x, y)
	draw()
	p.printf("</g>")
}

// The anchors of texts.
const (
	start  = "start"
	middle = "middle"
	end    = "end"
)

// text writes a text whose start, middle or end is at a place.
func (p *picture) text(x, y float64, anchor, text string) {
	var escaped bytes.Buffer

	_ = xml.EscapeText(&escaped, []byte(text)) // a buffer accepts everything

	p.printf(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, &escaped)
}

// line draws a line through points. A dashed line is thin.
func (p *picture) line(color string, dashed bool, points ...[2]float64) {
	places := ""
	for _, point := range points {
		places += fmt.Sprintf("%.1f,%.1f ", point[0], point[1])
	}

	style := `stroke-width="1.5"`
	if dashed {
		style = `stroke-dasharray="4"`
	}

	p.printf(`<polyline points="%s" fill="none" stroke="%s" %s/>`, places, color, style)
}

// dot draws a dot.
func (p *picture) dot(color string, x, y float64) {
	p.printf(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, x, y, color)
}

// bar draws a filled rectangle.
func (p *picture) bar(color string, x, y, width, height float64) {
	p.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x, y, width, height, color)
}

// bytes ends the picture and returns it.
func (p *picture) bytes() []byte {
	p.printf("</svg>")
	return p.out.Bytes()
}

// axis is an axis from 0 to at least some value, with three to five labels at round numbers.
type axis struct{ top, step float64 }

// newAxis returns the axis for values up to the highest.
func newAxis(highest float64) axis {
	step := niceStep(highest / 4)
	return axis{top: max(math.Ceil(highest/step), 1) * step, step: step}
}

// labels returns the numbers of the labels.
func (a axis) labels() []float64 {
	labels := make([]float64, int(math.Round(a.top/a.step))+1)
	for i := range labels {
		labels[i] = float64(i) * a.step
	}

	return labels
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
