package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// link connects a box with one that it needs.
type link struct {
	from, to *cell
	waits    bool
}

// linksOf returns what the boxes need, each pair once. Core is left out where something else needs it, too.
func linksOf(g *graph, cells map[string]*cell) []*link {
	var links []*link

	type pair struct{ from, to *cell }

	known := map[pair]*link{}

	add := func(n *node, key string, waits bool) {
		p := pair{cells[n.box], cells[key]}
		if p.from == p.to || p.to == nil {
			return
		}

		if known[p] == nil {
			known[p] = &link{from: p.from, to: p.to}
			links = append(links, known[p])
		}

		known[p].waits = known[p].waits || waits
	}

	for _, n := range g.nodes {
		for _, needed := range n.needs {
			add(n, needed.box, waitsForOthers(n.Provider) && needed.Ready != "Ready")
		}

		for _, label := range n.missing {
			add(n, missingKey(label, n.share), true)
		}

		waits := waitsForCore(n.Provider)

		switch {
		case !n.needsCore():
		case g.core == nil:
			add(n, missingKey(v1alpha2.CoreProviderName, n.share), true)
		case len(n.needs) == 0 || waits:
			add(n, g.core.box, waits)
		}
	}

	return links
}

// place sets where the boxes are: each layer is a column, in which boxes are near what they need.
func (s *sketch) place(links []*link) {
	var layers [][]*cell

	for _, b := range s.cells {
		for len(layers) <= b.layer {
			layers = append(layers, nil)
		}

		layers[b.layer] = append(layers[b.layer], b)
	}

	// A layer can be empty, for example without core.
	layers = slices.DeleteFunc(layers, func(boxes []*cell) bool { return len(boxes) == 0 })

	most := 0
	for _, boxes := range layers {
		most = max(most, len(boxes))
	}

	s.width = 2*margin + len(layers)*(boxWidth+gapX) - gapX
	s.height = 2*margin + most*(boxHeight+gapY) - gapY

	for column, boxes := range layers {
		order(boxes, links)

		top := (s.height - len(boxes)*(boxHeight+gapY) + gapY) / 2
		for row, b := range boxes {
			b.moveTo(margin+column*(boxWidth+gapX), top+row*(boxHeight+gapY))
		}
	}
}

// order sorts the boxes of a column by where the boxes are that they need, which are placed already.
func order(boxes []*cell, links []*link) {
	for _, b := range boxes {
		sum, count := 0, 0

		for _, l := range links {
			if l.from == b && l.to.layer < b.layer {
				sum += l.to.Y
				count++
			}
		}

		b.weight = sum / max(count, 1)
	}

	slices.SortStableFunc(boxes, func(a, b *cell) int { return cmp.Compare(a.weight, b.weight) })
}

// moveTo places a box with its texts.
func (b *cell) moveTo(x, y int) {
	const left, line = 14, 18

	b.X, b.Y = x, y

	top := y + (boxHeight-line*len(b.Lines))/2 + line - 5 // the base of the first line
	for i := range b.Lines {
		b.Lines[i].X = x + left
		b.Lines[i].Y = top + i*line
	}
}

// newArrow returns the arrow of a link: from the left side of a box to the right side of what it needs. In a cycle, it
// points to the right.
func newArrow(l *link) Arrow {
	x1, y1 := l.from.X, l.from.Y+boxHeight/2
	x2, y2 := l.to.X+boxWidth, l.to.Y+boxHeight/2
	bend, back := -gapX/2, arrowhead

	if l.to.X >= l.from.X { // around the boxes
		x1, x2 = l.from.X+boxWidth, l.to.X+boxWidth
		bend = gapX * 2 / 3

		if l.to.X > l.from.X {
			x2, back = l.to.X, -arrowhead
		}
	}

	end := x2 + back
	second := end - bend

	if l.to.X == l.from.X {
		second = end + bend
	}

	a := Arrow{
		Line: fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x1, y1, x1+bend, y1, second, y2, end, y2),
		Head: fmt.Sprintf("M%d %d l%d -4 v8 z", x2, y2, back),
	}
	if l.waits {
		a.State = "waits"
	}

	return a
}
