package cli

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers"
)

func TestOperatorVersion(t *testing.T) {
	const repository = "localhost:5000/capstan/capstan"

	published := &controllers.Published{Version: "v1.0.5", ChartFormat: "6"}

	for name, c := range map[string]struct {
		image     string
		published *controllers.Published
		want      ProgramVersion
	}{
		"published":        {repository + ":v1.1.0", published, ProgramVersion{"v1.0.5", "6"}},
		"the chart's":      {repository + ":v1.1.0", nil, ProgramVersion{Version: "v1.1.0"}},
		"a digest":         {repository + "@sha256:abc", nil, ProgramVersion{Version: "v1.1.0"}},
		"a tag and digest": {repository + ":v1.0.0@sha256:abc", nil, ProgramVersion{Version: "v1.1.0"}},
		"another image":    {repository + ":v1.0.9", nil, ProgramVersion{Version: "v1.0.9"}},
		"no tag":           {repository, nil, ProgramVersion{Version: "v1.1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{operatorVersionLabel: "v1.1.0"},
			}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy"}, {Name: "operator", Image: c.image}}
			NewWithT(t).Expect(OperatorVersion(d, c.published)).To(Equal(c.want))
		})
	}

	NewWithT(t).Expect(OperatorVersion(&appsv1.Deployment{}, nil)).To(Equal(ProgramVersion{}))
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
