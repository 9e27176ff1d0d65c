package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/chart"
)

func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		values string
		want   []value
		err    string
	}{
		"a value": {
			values: "# How many.\nreplicas: 2\n",
			want:   []value{{"replicas", "2", "How many."}},
		},
		"a comment about the file": {
			values: "# About the file.\n\n# How many.\nreplicas: 2\n",
			want:   []value{{"replicas", "2", "How many."}},
		},
		"a group": {
			values: "image:\n  # Without a tag.\n  repository: a\n",
			want:   []value{{"image.repository", `"a"`, "Without a tag."}},
		},
		"a group with a comment": {
			values: "# The flags.\nflags:\n  # A flag.\n  a: true\n",
			want:   []value{{"flags.a", "true", "A flag."}},
		},
		"a map as a value": {
			values: "# Labels of the\n# pods | all.\nlabels: {a: b}\n",
			want:   []value{{"labels", `{"a":"b"}`, `Labels of the pods \| all.`}},
		},
		"a value without a comment": {
			values: "replicas: 2\n",
			err:    "values.yaml, line 1: replicas has no comment that describes it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &chart.Chart{Raw: []*chart.File{{Name: "values.yaml", Data: []byte(test.values)}}}

			values, err := describe(c)
			if test.err != "" {
				g.Expect(err).To(MatchError(test.err))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(values).To(Equal(test.want))
		})
	}
}

func TestIsHelmLabel(t *testing.T) {
	for line, want := range map[string]bool{
		"    helm.sh/chart: capstan-0.1.0\n":               true,
		"    app.kubernetes.io/managed-by: Helm\n":         true,
		"    app.kubernetes.io/name: capstan\n":            false,
		"    helm.sh/resource-policy: keep\n":              false,
		"  # app.kubernetes.io/managed-by: in a comment\n": false,
	} {
		if got := isHelmLabel(line); got != want {
			t.Errorf("isHelmLabel(%q) = %t", line, got)
		}
	}
}
