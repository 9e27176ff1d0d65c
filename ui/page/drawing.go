package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// maxBoxes is how many boxes a drawing has before providers share one, and maxLayers how many layers it has then.
	maxBoxes  = 30
	maxLayers = 8
)

// The sizes of a drawing in pixels.
const (
	boxWidth  = 220
	boxHeight = 64
	gapX      = 72
	gapY      = 14
	margin    = 4
	arrowhead = 7
)

// Drawing shows what providers need: boxes in layers from left to right, with an arrow from each to what it needs. It
// illustrates the list, which says more.
type Drawing struct {
	ID, Title, Text string
	Width, Height   int
	Boxes           []Box
	Arrows          []Arrow
}

// Box is a provider in a drawing, or several that share it. Its state is that of the worst, or "missing".
type Box struct {
	X, Y, Width, Height int
	State               string
	Lines               []BoxLine
}

// BoxLine is a line of text in a box. Its kind is "name", "text" or "note".
type BoxLine struct {
	X, Y int
	Kind string
	Text string
}

// Arrow is an arrow with the shape of its line and its head. Its state is "waits" if a provider waits for what it
// points to.
type Arrow struct{ State, Line, Head string }

// sketch is a drawing in the making.
type sketch struct {
	cells         []*cell
	width, height int
}

// cell is a box with the providers in it.
type cell struct {
	Box

	key     string
	layer   int
	members []*node
	weight  int // where the boxes are that it needs
}

// sharing is how much providers share boxes.
type sharing int

const (
	shareNothing sharing = iota
	// shareQuiet lets providers of a type share a box if they neither fail nor wait, and explicitly need no other.
	shareQuiet
	// shareAll lets all providers of a type and layer share a box.
	shareAll
)

// newDrawing draws the providers of a cluster, with as many boxes as remain readable.
func newDrawing(id, of string, g *graph, uses map[string]Use) *Drawing {
	s := &sketch{}

	for share := shareNothing; share <= shareAll; share++ {
		s.cells = nil
		s.addCells(g, share)

		if len(s.cells) <= maxBoxes {
			break
		}
	}

	cells := map[string]*cell{}
	for _, c := range s.cells {
		cells[c.key] = c
		c.describe(uses)
	}

	links := linksOf(g, cells)
	s.place(links)

	d := &Drawing{
		ID: id, Title: "Map of the providers: " + of, Width: s.width, Height: s.height,
		Text: plural(len(g.nodes), "provider") +
			". An arrow points from each to what it needs. The list after the drawing says the same.",
	}

	for _, l := range links {
		d.Arrows = append(d.Arrows, newArrow(l))
	}

	for _, c := range s.cells {
		d.Boxes = append(d.Boxes, c.Box)
	}

	return d
}

// addCells adds a box for each provider, for those that share one, and for those that are missing.
func (s *sketch) addCells(g *graph, share sharing) {
	known := map[string]*cell{}

	box := func(key string, layer int) *cell {
		if known[key] == nil {
			known[key] = &cell{key: key, layer: layer, Box: Box{Width: boxWidth, Height: boxHeight}}
			s.cells = append(s.cells, known[key])
		}

		return known[key]
	}

	for _, n := range g.nodes {
		n.box, n.share = n.boxKey(g, share), share
		b := box(n.box, n.drawnLayer(share))
		b.members = append(b.members, n)

		missing := n.missing
		if n.needsCore() && g.core == nil {
			missing = append(slices.Clip(missing), v1alpha2.CoreProviderName)
		}

		for _, label := range missing { // next to the first provider that needs it
			b := box(missingKey(label, share), n.drawnLayer(share)-1)
			b.layer = min(b.layer, n.drawnLayer(share)-1)
		}
	}
}

// boxKey returns the box of a provider.
func (n *node) boxKey(g *graph, share sharing) string {
	linked := len(n.needs)+len(n.neededBy)+len(n.missing) > 0
	quiet := !linked && waitsFor(n.Provider) == ""

	switch {
	case n == g.core, share == shareNothing, share == shareQuiet && !quiet:
		return ID(n.Kind, n.Namespace, n.Name)
	default:
		return fmt.Sprintf("%s %d", n.Kind, n.drawnLayer(share))
	}
}

// drawnLayer returns the layer of a provider in the drawing.
func (n *node) drawnLayer(share sharing) int {
	if share == shareAll {
		return min(n.layer, maxLayers-1)
	}

	return n.layer
}

func missingKey(label string, share sharing) string {
	if share == shareAll {
		return "missing"
	}

	return "missing " + label
}

// describe writes the texts of a box.
func (b *cell) describe(uses map[string]Use) {
	var name, text, note string

	switch {
	case len(b.members) == 0:
		_, label, _ := strings.Cut(b.key, " ")
		b.State, name, text = "missing", cmp.Or(label, "others"), "not found"
	case len(b.members) == 1:
		n := b.members[0]
		b.State, name = stateOf(n.Provider), n.Label
		text = strings.TrimPrefix(n.Version+" · "+stateText(n.Provider), " · ")
		note = boxNote(n, uses)
	default:
		b.State = b.worstState()
		name = typeNames[v1alpha2.ProviderType(b.members[0].Kind)]
		text, note = b.summary(uses)
	}

	b.Lines = []BoxLine{{Kind: "name", Text: cut(name, 26)}, {Kind: "text", Text: cut(text, 28)}}
	if note != "" {
		b.Lines = append(b.Lines, BoxLine{Kind: "note", Text: cut(note, 28)})
	}
}

// boxNote returns what else a box says about a provider: what it waits for, or who uses it.
func boxNote(n *node, uses map[string]Use) string {
	use := uses[ID(n.Kind, n.Namespace, n.Name)]

	switch clusters := len(clustersOf(use)); {
	case waitsForCore(n.Provider):
		return "waits for core"
	case waitsForOthers(n.Provider):
		return "waits for others"
	case clusters > 0:
		return "in use by " + plural(clusters, "Cluster")
	case objectsOf(use) > 0:
		return "in use by " + plural(int(objectsOf(use)), "object")
	default:
		return ""
	}
}

// worstState returns the worst state of the providers in a box.
func (b *cell) worstState() string {
	worst := len(states) - 1
	for _, n := range b.members {
		worst = min(worst, slices.Index(states, stateOf(n.Provider)))
	}

	return states[worst]
}

// summary counts the providers of a box.
func (b *cell) summary(uses map[string]Use) (text, note string) {
	count, used := map[string]int{}, 0

	for _, n := range b.members {
		count[stateOf(n.Provider)]++

		if objectsOf(uses[ID(n.Kind, n.Namespace, n.Name)]) > 0 {
			used++
		}
	}

	text = fmt.Sprintf("%d providers", len(b.members))

	for _, state := range states {
		if count[state] > 0 && state != stateReady {
			text += fmt.Sprintf(", %d %s", count[state], state)
		}
	}

	if used > 0 {
		note = fmt.Sprintf("%d in use", used)
	}

	return text, note
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}

	return text
}
