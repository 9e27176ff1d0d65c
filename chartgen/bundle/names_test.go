package bundle

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTemplateNames(t *testing.T) {
	for _, test := range []struct {
		file         string
		template     bool
		clusterClass bool
		className    string
		note         string
	}{
		{file: "cluster-template.yaml", template: true},
		{file: "cluster-template-dev.yaml", template: true},
		{file: "cluster-template-a.b_c-D1.yaml", template: true},
		{file: "cluster-template_dev.yaml", template: true, note: "not a flavor, but published as a template"},
		{file: "clusterclass-quick.yaml", template: true, clusterClass: true, className: "quick"},
		{file: "clusterclass-quick.start.yaml", template: true, clusterClass: true, className: "quick.start"},
		{file: "clusterclass-.yaml", template: true, clusterClass: true},

		{file: "clusterclass.yaml"},
		{file: "cluster-class.yaml"},
		{file: "my-cluster-template.yaml"},
		{file: "cluster-template.yml"},
		{file: "cluster-template"},
		{file: "cluster-template-dev.yaml.sha256"},
		{file: "metadata.yaml"},
		{file: "infrastructure-components.yaml"},
		{file: ""},

		{file: "cluster-template/../../etc/passwd.yaml", note: "path traversal"},
		{file: `cluster-template\..\passwd.yaml`, note: "path traversal"},
		{file: "clusterclass-a/b.yaml", note: "a folder"},
		{file: "cluster-template a.yaml", note: "a space"},
		{file: "cluster-template\n.yaml", note: "a line break"},
		{file: "cluster-template-%2e.yaml", note: "URL encoding"},
	} {
		t.Run(test.file, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(IsTemplate(test.file)).To(Equal(test.template), test.note)
			g.Expect(IsClusterClass(test.file)).To(Equal(test.clusterClass), test.note)
			g.Expect(ClusterClassName(test.file)).To(Equal(test.className), test.note)
		})
	}
}
