package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestAxis(t *testing.T) {
	for name, test := range map[string]struct {
		highest float64
		want    []float64
	}{
		"of requests":            {355, []float64{0, 100, 200, 300, 400}},
		"of a round number":      {400, []float64{0, 100, 200, 300, 400}},
		"of seconds":             {9.2, []float64{0, 5, 10}},
		"of fractions":           {0.31, []float64{0, 0.1, 0.2, 0.3, 0.4}},
		"of nothing but zeroes":  {0, []float64{0, 0.001}},
		"just above a round one": {401, []float64{0, 200, 400, 600}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newAxis(test.highest).labels()
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPicture(t *testing.T) {
	p := newPicture(100, 50)
	p.at(10, 20, func() {
		p.bar(colors[0], 0, 0, 10, 5)
		p.text(0, 0, start, "time < 0.65 & more")
	})
	p.line(colors[1], true, [2]float64{0, 0}, [2]float64{10, 5})
	p.dot(colors[1], 10, 5)

	text := string(p.bytes())

	elements := map[string]int{}

	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}

		if element, ok := token.(xml.StartElement); ok {
			elements[element.Name.Local]++
		}
	}

	want := map[string]int{"svg": 1, "g": 1, "rect": 2, "text": 1, "polyline": 1, "circle": 1}
	if diff := cmp.Diff(want, elements); diff != "" {
		t.Errorf("%s in\n%s", diff, text)
	}
}
