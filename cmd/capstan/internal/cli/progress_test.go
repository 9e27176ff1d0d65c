package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// screen returns the rows that a terminal has shown at the end, with all that was scrolled out of it.
func screen(g Gomega, output string, height int) []string {
	rows := []string{""}
	up := regexp.MustCompile(`^\x1b\[(\d+)A\x1b\[J`)
	row := regexp.MustCompile(`^\x1b\[(\d+)A\x1b\[2K([^\r]*)\r\x1b\[\d+B`)

	for output != "" {
		if match := up.FindStringSubmatch(output); match != nil {
			n, err := strconv.Atoi(match[1])
			g.Expect(err).NotTo(HaveOccurred())

			n = min(n, height-1) // the cursor does not leave the terminal
			rows = append(rows[:len(rows)-1-n], "")
			output = output[len(match[0]):]

			continue
		}

		if match := row.FindStringSubmatch(output); match != nil {
			n, err := strconv.Atoi(match[1])
			g.Expect(err).NotTo(HaveOccurred())

			rows[len(rows)-1-n] = match[2]
			output = output[len(match[0]):]

			continue
		}

		line, rest, _ := strings.Cut(output, "\n")
		rows[len(rows)-1] = line
		rows = append(rows, "")
		output = rest
	}

	return rows[:len(rows)-1]
}

// TestProgressFitsTheTerminal: no line is left behind on a terminal with fewer rows than there are lines.
func TestProgressFitsTheTerminal(t *testing.T) {
	g := NewWithT(t)

	const height, lines = 5, 8

	var out bytes.Buffer

	p := &Progress{out: &out, width: 80, height: height}

	var shown []string

	for round := range 3 {
		shown = nil
		for n := range lines {
			shown = append(shown, fmt.Sprintf("line %d, round %d", n, round))
		}

		p.Show(shown...)
	}

	g.Expect(screen(g, out.String(), height)).To(Equal([]string{
		"line 0, round 2", "line 1, round 2", "line 2, round 2", "… and 5 more",
	}))

	for n := range lines {
		p.Show(shown[n+1:]...)
		p.Printf("%d is done", n)
	}

	g.Expect(screen(g, out.String(), height)).To(Equal([]string{
		"0 is done", "1 is done", "2 is done", "3 is done", "4 is done", "5 is done", "6 is done", "7 is done",
	}))
}

// TestProgressWritesChanges: a terminal gets the rows that have changed, and causes are wrapped while there is room.
func TestProgressWritesChanges(t *testing.T) {
	g := NewWithT(t)

	var out bytes.Buffer

	p := &Progress{out: &out, width: 30, height: 6}

	const applying = "a: applying v1.0.0: Unschedulable: no node"

	p.Show(applying, "b: waits")
	g.Expect(screen(g, out.String(), p.height)).To(Equal([]string{
		"a: applying v1.0.0:", "  Unschedulable: no node", "b: waits",
	}))

	out.Reset()
	p.Show(applying, "b: waits")
	g.Expect(out.String()).To(BeEmpty())

	p.Show(applying, "b: runs")
	g.Expect(out.String()).To(Equal("\x1b[1A\x1b[2Kb: runs\r\x1b[1B"))
}
