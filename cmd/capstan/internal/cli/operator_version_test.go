package cli

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/controllers"
)

func TestOperatorImage(t *testing.T) {
	g := NewWithT(t)
	d := &appsv1.Deployment{}
	g.Expect(OperatorImage(d)).To(BeEmpty())

	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy"}, {Name: "operator", Image: "capstan:v1"}}
	g.Expect(OperatorImage(d)).To(Equal("capstan:v1"))
}

func TestOperatorVersion(t *testing.T) {
	g := NewWithT(t)
	d := &appsv1.Deployment{}
	g.Expect(OperatorVersion(d, nil)).To(BeZero())

	d.Labels = map[string]string{"app.kubernetes.io/version": "v1.2.3"}
	g.Expect(OperatorVersion(d, nil)).To(Equal(ProgramVersion{Version: "v1.2.3"}))

	published := &controllers.Published{Version: "v1.2.4", ChartFormat: "7"}
	g.Expect(OperatorVersion(d, published)).To(Equal(ProgramVersion{"v1.2.4", "7"}))
}

func TestDifferences(t *testing.T) {
	own := ProgramVersion{"v1.2.3", "7"}

	for _, c := range []struct {
		own, operator ProgramVersion
		want          []string
	}{
		{own, own, nil},
		{own, ProgramVersion{"v1.2.9", "7"}, nil},
		{own, ProgramVersion{"v1.2.9", ""}, nil},
		{own, ProgramVersion{"dev", "7"}, nil},
		{ProgramVersion{"dev", "7"}, own, nil},
		{own, ProgramVersion{"v1.1.9", "7"}, []string{"use a program of version v1.1.x, or upgrade the operator"}},
		{own, ProgramVersion{"v2.2.3", "7"}, []string{"the operator has version v2.2.3 and this program v1.2.3"}},
		{own, ProgramVersion{"v1.2.3", "6"}, []string{"the operator builds charts in format 6 and this program in format 7"}},
		{own, ProgramVersion{"v1.1.0", "6"}, []string{"v1.1.0", "format 6"}},
	} {
		g := NewWithT(t)
		differences := c.own.Differences(c.operator)
		g.Expect(differences).To(HaveLen(len(c.want)), "%+v", c)

		for i, want := range c.want {
			g.Expect(differences[i]).To(ContainSubstring(want))
		}
	}
}
