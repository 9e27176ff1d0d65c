package main

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/test/bench/plot"
)

// panel is a diagram with bars for a value of each program in each stage.
type panel struct {
	title  string
	value  func(figures) float64
	places int
}

var panels = []panel{
	{"time, s: median, and the smallest and largest", seconds, 2},
	{"API requests", count, 0},
	{"CPU of the operator, or of kubectl, s", cpu, 2},
	{"peak memory of the operator, or of kubectl, MiB", mebibytes, 0},
}

// The stages and programs in the plot. Others have values of quite another size, or none.
var (
	plottedStages   = []stage{install, change, upgradeOne, rollBack, upgradeAll, restart}
	plottedPrograms = []string{capstan, kubectl, peer, floor} // in the order of plot.Colors
)

// Dimensions of the picture, in pixels.
const (
	legendHeight            = 30.0
	marginLeft, marginTop   = 90.0, 26.0
	plotWidth, marginRight  = 310.0, 50.0
	barHeight, stageSpacing = 11.0, 9.0
	panelWidth              = marginLeft + plotWidth + marginRight
	stageHeight             = 4*barHeight + stageSpacing
)

// draw draws the results as SVG.
func draw(r results) []byte {
	panelHeight := marginTop + stageHeight*float64(len(plottedStages)) + 30
	picture := plot.New(2*panelWidth, legendHeight+2*panelHeight)

	picture.At(marginLeft, 8, func() {
		x := 0.0

		for i, program := range plottedPrograms {
			if len(r[program]) == 0 {
				continue
			}

			picture.Bar(plot.Colors[i], x, 0, barHeight, barHeight)
			picture.Text(x+barHeight+5, barHeight-2, plot.Start, legends[program])
			x += 190
		}
	})

	for i, p := range panels {
		column, row := i%2, i/2
		picture.At(float64(column)*panelWidth, legendHeight+float64(row)*panelHeight, func() { p.draw(picture, r) })
	}

	return picture.Bytes()
}

// legends are the names of the programs in the plot.
var legends = map[string]string{
	capstan: "Capstan", kubectl: "kubectl apply --server-side", peer: "cluster-api-operator", floor: "CRDs alone",
}

func (p panel) draw(out *plot.Picture, r results) {
	highest := 0.0

	for _, s := range plottedStages {
		for _, program := range plottedPrograms {
			highest = max(highest, r.of(program, s, p.value).Max)
		}
	}

	axis := plot.NewAxis(highest)
	x := func(value float64) float64 { return marginLeft + plotWidth*value/axis.Top }
	bottom := marginTop + stageHeight*float64(len(plottedStages))

	out.Text(marginLeft, marginTop-12, plot.Start, p.title)

	for _, value := range axis.Labels() {
		out.Bar("#ddd", x(value), marginTop, 1, bottom-marginTop)
		out.Text(x(value), bottom+14, plot.Middle, fmt.Sprintf("%.6g", value))
	}

	for i, s := range plottedStages {
		y := marginTop + stageHeight*float64(i)
		out.Text(marginLeft-6, y+stageHeight/2, plot.End, strings.ReplaceAll(string(s), "-", " "))

		for color, program := range plottedPrograms {
			values := r.of(program, s, p.value)
			if values.Max == 0 {
				continue
			}

			out.Bar(plot.Colors[color], marginLeft, y, x(values.Median)-marginLeft, barHeight-2)
			out.Line("#333", false,
				[2]float64{x(values.Min), y + barHeight/2 - 1}, [2]float64{x(values.Max), y + barHeight/2 - 1})
			out.Text(x(values.Max)+4, y+barHeight-2, plot.Start, fmt.Sprintf("%.*f", p.places, values.Median))

			y += barHeight
		}
	}
}
