package bundle

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

const pod = "spec: {initContainers: [{image: first}, {name: no-image}, text], " +
	"containers: [{image: second}, {image: 3}]}"

func TestImages(t *testing.T) {
	for name, test := range map[string]struct {
		object   string
		runsPods bool
		images   []string
	}{
		"Deployment":  {"kind: Deployment\nspec: {template: {" + pod + "}}", true, []string{"first", "second"}},
		"DaemonSet":   {"kind: DaemonSet\nspec: {template: {" + pod + "}}", true, []string{"first", "second"}},
		"StatefulSet": {"kind: StatefulSet\nspec: {template: {" + pod + "}}", true, []string{"first", "second"}},
		"ReplicaSet":  {"kind: ReplicaSet\nspec: {template: {" + pod + "}}", true, []string{"first", "second"}},
		"Job":         {"kind: Job\nspec: {template: {" + pod + "}}", true, []string{"first", "second"}},
		"CronJob": {
			"kind: CronJob\nspec: {jobTemplate: {spec: {template: {" + pod + "}}}}", true, []string{"first", "second"},
		},
		"Pod":                      {"kind: Pod\n" + pod, true, []string{"first", "second"}},
		"another kind":             {"kind: MachineTemplate\nspec: {template: {" + pod + "}}", false, nil},
		"no template":              {"kind: Deployment\nspec: {}", true, nil},
		"a template of text":       {"kind: Deployment\nspec: {template: text}", true, nil},
		"a spec of text":           {"kind: Deployment\nspec: text", true, nil},
		"a kind that is a number":  {"kind: 1\nspec: {template: {" + pod + "}}", false, nil},
		"containers that are text": {"kind: Pod\nspec: {containers: text}", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var object map[string]any
			g.Expect(yaml.Unmarshal([]byte(test.object), &object)).To(Succeed())
			g.Expect(RunsPods(object)).To(Equal(test.runsPods))
			g.Expect(Images(object)).To(Equal(test.images))
		})
	}
}

func TestPodTemplate(t *testing.T) {
	g := NewWithT(t)

	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}}}
	deployment := map[string]any{"kind": "Deployment", "spec": map[string]any{"template": template}}
	g.Expect(PodTemplate(deployment)).To(Equal(template))
	g.Expect(PodTemplate(map[string]any{"kind": "Service"})).To(BeNil())
	g.Expect(PodTemplate(nil)).To(BeNil())
}
