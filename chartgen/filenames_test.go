package chartgen_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// TestLongNames: objects whose names are as long as Kubernetes allows get files of their own, with names
// that any archive and file system can hold.
func TestLongNames(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 253)

	webhooks := "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
		"metadata:\n  name: "
	crd := "---\n" + strings.Replace(crdWith("a"), "name: a", "name: "+long, 1)
	b := provider("odd", configMapText+webhooks+long+"\n"+webhooks+long[1:]+"y\n"+crd)

	built, err := chartgen.Build(b)
	g.Expect(err).NotTo(HaveOccurred())
	compareOnce(t, "defaults", b, built, nil)

	for _, f := range append(built.Files, built.CRDs...) {
		g.Expect(len(f.Name[strings.LastIndexByte(f.Name, '/')+1:])).To(BeNumerically("<=", 100), f.Name)
	}

	g.Expect(built.File(chartgen.TemplateFile("ConfigMap", "config"))).NotTo(BeEmpty())
	g.Expect(built.File(chartgen.TemplateFile("ValidatingWebhookConfiguration", long))).NotTo(BeEmpty())
}

// TestRepeatedCRD: of a CRD that the components contain twice, the last one is installed, as by clusterctl.
func TestRepeatedCRD(t *testing.T) {
	g := NewWithT(t)
	crd := "---\n" + strings.Replace(crdWith("a"), "name: a", "name: twice.example.com", 1)

	last := strings.Replace(crd, "description: a", "description: last", 1)

	built, err := chartgen.Build(provider("odd", configMapText+crd+last))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(built.CRDs).To(HaveLen(1))
	g.Expect(built.CRDs[0].Name).To(Equal("crds/twice.example.com.yaml"))
	g.Expect(string(built.CRDs[0].Data)).To(ContainSubstring("description: last"))
}

// TestNameCRDs: the name of a CRD is that of the object, which the name of its file in the chart need not be.
func TestNameCRDs(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 100) + ".example.com"
	crd := "---\n" + strings.Replace(crdWith("a"), "name: a", "name: "+long, 1)

	built, err := chartgen.Build(provider("odd", configMapText+crd))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(built.CRDs[0].Name).NotTo(ContainSubstring(long))

	last := chart.File{Name: "crds/another.yaml", Data: built.CRDs[0].Data}
	broken := chart.File{Name: "crds/broken.yaml", Data: []byte("{")}
	g.Expect(chartgen.NameCRDs(append(built.CRDs, last, broken))).To(Equal([]chart.File{
		{Name: "crds/" + long + ".yaml", Data: last.Data}, broken,
	}))
}

func TestTemplateFile(t *testing.T) {
	for object, want := range map[[2]string]string{
		{"Deployment", "manager"}:         "deployment-manager",
		{"ClusterRole", "a:b_c.d"}:        "clusterrole-a-b-c.d",
		{"Role", strings.Repeat("x", 90)}: "role-" + strings.Repeat("x", 90),
		{"Role", strings.Repeat("x", 91)}: "role-" + strings.Repeat("x", 77) + "-00fe0bef09b3",
	} {
		NewWithT(t).Expect(chartgen.TemplateFile(object[0], object[1])).To(Equal(chart.TemplatesDir + want + ".yaml"))
	}
}
