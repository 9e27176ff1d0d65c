package v1alpha2_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestLabelValue(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	for _, s := range []string{"", "v1.13.5", "infrastructure-aws", strings.Repeat("x", 63)} {
		NewWithT(t).Expect(v1alpha2.LabelValue(s)).To(Equal(s), "a valid value stays as it is")
	}

	seen := map[string]string{}

	for _, s := range []string{
		"v1.13.5+build.1", "v1.13.5_build.1", digest, digest + "0", "sha256:" + digest,
		"-", "--", "+v1", "ünï", "ends-", " ",
		strings.Repeat("-", 80), strings.Repeat("é", 80), "some-host.example.com_" + digest,
	} {
		g := NewWithT(t)
		value := v1alpha2.LabelValue(s)
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), "%q became %q", s, value)
		g.Expect(seen).NotTo(HaveKey(value), "%q has the same value as another", s)
		seen[value] = s
	}

	NewWithT(t).Expect(v1alpha2.LabelValue("v1.13.5+build.1")).To(HavePrefix("v1.13.5_build.1."))
}

func TestLabelKeys(t *testing.T) {
	for _, key := range []string{
		v1alpha2.Finalizer, v1alpha2.ProviderLabel, v1alpha2.VersionLabel,
		v1alpha2.DriftAnnotation, v1alpha2.HealthyWhenAnnotation,
	} {
		NewWithT(t).Expect(validation.IsQualifiedName(key)).To(BeEmpty(), key)
	}
}

// TestConditionTypesAndReasons reads all types and reasons from the source: the API server rejects
// the whole status if one of them is malformed.
func TestConditionTypesAndReasons(t *testing.T) {
	g := NewWithT(t)
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	g.Expect(err).NotTo(HaveOccurred())

	types, reasons := map[string]string{}, map[string]string{}

	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}

		name := spec.Names[0].Name
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(value).To(MatchRegexp(`^[A-Z][A-Za-z]*$`), name)

		group := types
		if strings.HasSuffix(name, "Reason") {
			group = reasons
		}

		g.Expect(group).NotTo(HaveKey(value), name)
		group[value] = name

		return true
	})
	g.Expect(types).To(HaveLen(13))
	g.Expect(len(reasons)).To(BeNumerically(">", 30))
}
