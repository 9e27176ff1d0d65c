package expr

import (
	"strings"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	line := "                    description: a field of a CRD, with {braces} but without a variable\n"

	flags := "  - --feature-gates=MachinePool=${EXP_MACHINE_POOL:=true},Topology=${CLUSTER_TOPOLOGY:=false}\n"
	object := strings.Repeat(flags+strings.Repeat(line, 8), 40)

	for _, bench := range []struct{ name, text string }{
		{"no expressions, 3 MB", strings.Repeat(line, 3<<20/len(line))},
		{"no expressions, with $, 3 MB", strings.Repeat(line+"the value of $(VAR) and $$(VAR)\n", 3<<20/(len(line)+32))},
		{"80 expressions, 30 KB", object},
		{"10000 expressions in one line, 70 KB", strings.Repeat("${A:=b}", maxExpressions)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.text)))
			b.ReportAllocs()

			for b.Loop() {
				text, err := Parse(bench.text)
				if err != nil {
					b.Fatal(err)
				}

				text.Template()
			}
		})
	}
}
