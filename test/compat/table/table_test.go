package table_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/compat/table"
)

// spec returns the report of a spec.
func spec(state types.SpecState, message string, labels ...ginkgo.Labels) types.SpecReport {
	report := types.SpecReport{LeafNodeText: "works", State: state, Failure: types.Failure{Message: message}}
	for _, l := range labels {
		report.LeafNodeLabels = append(report.LeafNodeLabels, l...)
	}

	return report
}

// write writes the table of specs, and returns it with the error.
func write(t *testing.T, differences []table.Difference, specs ...types.SpecReport) (string, error) {
	t.Helper()

	data, err := json.Marshal([]types.Report{{SpecReports: specs}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	read, err := table.Read(bytes.NewReader(data))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	var out bytes.Buffer

	err = read.Write(&out, differences)

	return out.String(), err
}

func TestTable(t *testing.T) {
	g := NewWithT(t)
	reasons := []table.Difference{{"downgrade", "CRDs decide"}}

	out, err := write(t, reasons,
		spec(types.SpecStatePassed, "", table.Row("First (all)", "a, b: c/d = 100%")),
		spec(types.SpecStatePassed, "", table.Row("Second", "e"), table.Row("First (all)", "f")),
		spec(types.SpecStatePassed, "", table.Row("First (all)", "g", "downgrade")),
		spec(types.SpecStatePassed, "", table.Row("First (all)", "g")),
		spec(types.SpecStateSkipped, "", table.Row("First (all)", "left out by the filter")),
		spec(types.SpecStateSkipped, "needs root", table.Row("Second", "h")),
		spec(types.SpecStatePassed, "", nil),
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal(`
First (all)

| row | result | reason |
|---|---|---|
| a, b: c/d = 100% | pass |  |
| f | pass |  |
| g | differs | downgrade: CRDs decide |

Second

| row | result | reason |
|---|---|---|
| e | pass |  |
| h | skipped | needs root |

5 rows: 3 pass 1 differs 1 skipped 0 FAILED
`))
}

func TestTableErrors(t *testing.T) {
	for name, c := range map[string]struct {
		spec        types.SpecReport
		differences []table.Difference
		want        string
	}{
		"a spec that fails": {
			spec(types.SpecStateFailed, "Expected\n1\nto be 2", table.Row("A", "b")), nil, "A: b: works: Expected",
		},
		"a spec that panics": {spec(types.SpecStatePanicked, "nil", table.Row("A", "b")), nil, "A: b: works: nil"},
		"a difference that is not documented": {
			spec(types.SpecStatePassed, "", table.Row("A", "b", "c")), nil, `A: b: the difference "c" is not documented`,
		},
		"a difference that was not shown": {
			spec(types.SpecStatePassed, "", table.Row("A", "b")), []table.Difference{{"c", "d"}},
			`the documented difference "c" was not shown by any row`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := write(t, c.differences, c.spec)
			NewWithT(t).Expect(err).To(MatchError(c.want))
		})
	}

	_, err := table.Read(bytes.NewReader([]byte("{")))
	NewWithT(t).Expect(err).To(HaveOccurred())
}
