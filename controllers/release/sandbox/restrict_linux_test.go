package sandbox

import (
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// TestMemoryOfHostileCharts: a single large allocation takes no more memory than many small ones.
func TestMemoryOfHostileCharts(t *testing.T) {
	g := NewWithT(t)

	// most returns the most memory in bytes that one child has used until now.
	most := func() int64 {
		var usage unix.Rusage
		g.Expect(unix.Getrusage(unix.RUSAGE_CHILDREN, &usage)).To(Succeed())

		return usage.Maxrss << 10
	}

	_, err := Render(t.Context(), "ns", template("a: b"))
	g.Expect(err).NotTo(HaveOccurred())

	harmless := most()

	for _, text := range []string{
		`a: {{ repeat 600000000 "x" }}`,
		`a: {{ repeat 300000000 "x" }}`,
		`a: {{ repeat 150000000 "x" }}`,
		`{{ $a := "xxxxxxxx" }}{{ range until 40 }}{{ $a = print $a $a }}{{ end }}`,
		`{{ range until 1000000000 }}{{ end }}`,
	} {
		_, err := Render(t.Context(), "ns", template(text))
		g.Expect(err).To(MatchError(ContainSubstring("more than 128 MiB of memory")), text)

		t.Logf("%d MiB after %s", most()>>20, text)
		g.Expect(most()-harmless).To(BeNumerically("<", limit.RenderMemory+arena), text)
	}
}
