package expr

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParse: arbitrary bytes never cause a panic, and the same text always compiles to the same
// template.
func FuzzParse(f *testing.F) {
	for _, form := range forms {
		f.Add([]byte(form.text))
	}

	f.Fuzz(func(t *testing.T, source []byte) {
		text, err := Parse(string(source))
		if err != nil {
			_ = err.Error()
			return
		}

		again, err := Parse(string(source))
		if err != nil || again.Template() != text.Template() {
			t.Fatalf("%q compiles to %q and then to %q (%v)", source, text.Template(), again.Template(), err)
		}
	})
}

// FuzzTemplate: a prefix, followed by expressions generated from the recipe, renders to the same
// text as in clusterctl, and fails where clusterctl fails.
func FuzzTemplate(f *testing.F) {
	for i, form := range forms {
		f.Add(form.text, []byte(form.template), hostile[i%len(hostile)], "b", uint8(i))
	}

	f.Fuzz(func(t *testing.T, prefix string, recipe []byte, v, w string, set uint8) {
		tooLong := len(prefix) > 500 || len(recipe) > 200 || len(v) > 40 || len(w) > 40
		if tooLong || !utf8.ValidString(v) || !utf8.ValidString(w) {
			t.Skip()
		}

		variables := map[string]string{}

		for i, value := range []string{v, w, v + w, "a" + v} {
			if set>>i&1 == 1 {
				variables[names[i]] = value
			}
		}

		compare(t, prefix+generate(recipe), variables)
	})
}

// compare parses a text and compares the result with clusterctl.
func compare(t *testing.T, source string, variables map[string]string) {
	t.Helper()

	text, err := Parse(source)

	_, clusterctlErr := clusterctl(source, variables)
	switch {
	case errors.Is(err, ErrUnsupported):
	case err != nil && clusterctlErr == nil:
		t.Fatalf("%q: clusterctl accepts the text, but Parse fails: %v", source, err)
	case err != nil:
	default:
		expectEqual(t, text, source, variables)
	}
}

// TestGenerated compares texts and values that are random but reproducible.
func TestGenerated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))

	pieces := append([]string{"a", "b", "ab", "A", ".", "/", "-", "é", "€", "😀"}, hostile...)

	for range 2000 {
		recipe := make([]byte, 1+random.IntN(25))
		for i := range recipe {
			recipe[i] = byte(random.Uint32())
		}

		variables := map[string]string{}

		for _, name := range names {
			for n := random.IntN(5); n < 4; n++ { // one in five stays unset
				variables[name] += pieces[random.IntN(len(pieces))]
			}
		}

		compare(t, generate(recipe), variables)
	}
}

var names = []string{"V", "W", "X", "1"}

// literals are the pieces of literal text in generated texts.
var literals = []string{
	"a", " ", "$", "$$", "{", "{{", "}", "}}", "\n", "é", `"`, "\\", "---\n", "- ", "\r\n", "${ V }", "\x00", "\xff",
	"<no value>", "<no ", "value>",
}

// generate returns a text with expressions. Each byte of the recipe makes one choice.
func generate(recipe []byte) string {
	g := generator{recipe: recipe}
	for len(g.recipe) > 0 && g.out.Len() < 1000 {
		if g.choose(3) == 0 {
			g.one(literals...)
		} else {
			g.expression(0)
		}
	}

	return g.out.String()
}

type generator struct {
	recipe []byte
	out    strings.Builder
}

func (g *generator) choose(n int) int {
	if len(g.recipe) == 0 {
		return 0
	}

	choice := int(g.recipe[0]) % n
	g.recipe = g.recipe[1:]

	return choice
}

func (g *generator) one(of ...string) { g.out.WriteString(of[g.choose(len(of))]) }

func (g *generator) many(of ...string) {
	for n := g.choose(5) + 1; n > 0; n-- {
		g.one(of...)
	}
}

func (g *generator) expression(depth int) {
	g.out.WriteString("${")

	switch g.choose(7) {
	case 0:
		g.one("", " ")
		g.one(names...)
		g.one("", " ")
	case 1:
		g.one("#", "")
		g.one(names...)
	case 2:
		g.one(names...)
		g.one(":=", ":-", "=", ":?", ":+", "-")
		g.words(depth, "x", "a b", `""`, ":", "{{", "}}", "$", `\`, "/", "#", "é", "'")
	case 3:
		g.one(names...)
		g.one("^", "^^", ",", ",,", "^,")
	case 4:
		g.one(names...)
		g.out.WriteString(":")
		g.words(depth, "0", "1", "2", "7", " ", "x")

		if g.choose(2) == 0 {
			g.out.WriteString(":")
			g.words(depth, "0", "1", "2", "-1", "x", "9999999999999999999")
		}
	case 5:
		g.one(names...)
		g.one("#", "##", "%", "%%")
		g.many("a", "b", "*", "?", "[", "]", "[a-c]", "[^a]", `\`, "-", "é", ".", "/", "^", "{")
	case 6:
		g.one(names...)
		g.one("/", "//", "/#", "/%")
		g.words(depth, "a", "b", `\/`, `\\`, "$$", "é", "}", " ")
		g.out.WriteString("/")

		if g.choose(3) > 0 {
			g.words(depth, "x", "$1", "é", `\/`, "{{", "/", "$$")
		}
	}

	g.out.WriteString("}")
}

// words writes an argument that consists of text, of text and an expression, or of an expression.
func (g *generator) words(depth int, of ...string) {
	switch {
	case depth > 2 || g.choose(3) > 0:
		g.many(of...)
	case g.choose(2) == 0:
		g.one(of...)
		g.expression(depth + 1)
		g.one(of...)
	default:
		g.expression(depth + 1)
	}
}
