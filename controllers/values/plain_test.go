package values_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/values"
)

func TestPlain(t *testing.T) {
	for name, tt := range map[string]struct {
		raw    string
		want   map[string]any
		reason string
	}{
		"none":                {"", map[string]any{}, ""},
		"an object":           {`{"a": {"b": [1, "c"]}}`, map[string]any{"a": map[string]any{"b": []any{1.0, "c"}}}, ""},
		"a list":              {`[]`, nil, "spec.values: it must be an object, like a values.yaml"},
		"null":                {`null`, nil, "spec.values: it must be an object, like a values.yaml"},
		"too many values":     {`{"a": [` + strings.Repeat("1,", 100001) + `1]}`, nil, "has more than 100000 values"},
		"too many levels":     {strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), nil, "levels"},
		"only of white space": {" ", map[string]any{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			got, err := values.Plain(&v1alpha2.ProviderSpec{Values: &runtime.RawExtension{Raw: []byte(tt.raw)}})
			if tt.reason != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.reason)))
				g.Expect(err).To(BeAssignableToTypeOf(&values.CustomizationError{}))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestBuiltChartsAcceptNoValues(t *testing.T) {
	schema := &values.Schema{Label: "infrastructure-docker"}
	spec := &v1alpha2.ProviderSpec{Values: &runtime.RawExtension{Raw: []byte("{}")}}

	_, _, err := schema.Values(values.Input{Spec: spec})
	NewWithT(t).Expect(err).To(MatchError("spec.values: the chart of infrastructure-docker was built from a provider's " +
		"components and does not accept it; remove it, and use spec.variables, spec.manager, spec.deployment " +
		"or spec.patches"))
}
