package health_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/health"
)

func TestRequiredConditions(t *testing.T) {
	const missing = "it does not have the condition Ready yet"

	for name, c := range map[string]struct{ required, status, want string }{
		"none, without a status": {"", "", ""},
		"one that is True":       {"Ready", "conditions: [{type: Ready, status: 'True'}]", ""},
		"one of another kind":    {"Synced", "conditions: [{type: Synced, status: 'True'}]", ""},
		"without a status":       {"Ready", "", missing},
		"one that is missing":    {"Ready", "conditions: [{type: A, status: 'True'}]", missing},
		"one that is Unknown": {
			"Synced", "conditions: [{type: Synced, status: Unknown}]", "its condition Synced is not True",
		},
		"one that is False, with why": {
			"Synced", "conditions: [{type: Synced, status: 'False', message: no login}]",
			"its condition Synced is not True: no login",
		},
		"two, with spaces": {" Synced , Ready,", "conditions: [{type: Synced, status: 'True'}]", missing},
		"two that are True": {
			"Ready,Synced", "conditions: [{type: Synced, status: 'True'}, {type: Ready, status: 'True'}]", "",
		},
		"an observed generation": {"observedGeneration", "observedGeneration: 2", ""},
		"no observed generation": {
			"observedGeneration", "phase: Done", "its controller has not observed it yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			content, err := yaml.YAMLToJSON([]byte("apiVersion: example.com/v1\nkind: Sample\n" +
				"metadata: {name: a, generation: 2}\nstatus: {" + c.status + "}"))
			g.Expect(err).NotTo(HaveOccurred())

			o := &unstructured.Unstructured{}
			g.Expect(o.UnmarshalJSON(content)).To(Succeed())

			if c.required != "" {
				o.SetAnnotations(map[string]string{"capstan.dev/healthy-when": c.required})
			}

			result := health.Compute(o)
			g.Expect(result.Healthy()).To(Equal(c.want == ""), result.Message)

			if c.want != "" {
				g.Expect(result.Message).To(Equal(c.want))
			}
		})
	}
}
