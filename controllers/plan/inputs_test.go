package plan

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestInputs(t *testing.T) {
	// inputs returns those of a provider with a Secret and additional manifests, after a change of them.
	inputs := func(change func(secret, manifests map[string]string, registry *string)) v1alpha2.RevisionInputs {
		g := NewWithT(t)
		secret := map[string]string{"AWS_B64ENCODED_CREDENTIALS": "secret", "EXTRA": "x", "images": "{}"}
		manifests := map[string]string{v1alpha2.ConfigMapManifestsKey: "apiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: extra}\ndata: {a: \"${EXTRA}\"}\n"}
		registry := ""
		change(secret, manifests, &registry)

		object := variables(nil)
		object.Data = map[string][]byte{}

		for key, value := range secret {
			object.Data[key] = []byte(value)
		}

		c := readOnlyClient(object, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "extra"}, Data: manifests,
		})
		planner := newPlanner(c)
		planner.ImageRegistry = registry

		provider := aws("v1.0.0")
		provider.Spec.AdditionalManifests = &v1alpha2.ConfigMapReference{Name: "extra"}

		planned, err := planner.Plan(t.Context(), Request{Provider: provider, Scope: c})
		g.Expect(err).NotTo(HaveOccurred())

		return planned.Release.Inputs
	}
	original := inputs(func(_, _ map[string]string, _ *string) {})

	g := NewWithT(t)
	g.Expect(original).To(And(
		HaveField("Variables", HaveLen(16)),
		HaveField("Manifests", HaveLen(16)),
		HaveField("Source", HaveLen(16)),
	))

	for name, tt := range map[string]struct {
		change func(secret, manifests map[string]string, registry *string)
		want   state.Difference
	}{
		"nothing": {func(_, _ map[string]string, _ *string) {}, state.DifferentConfiguration},
		"a key of the Secret that is not used": {
			func(secret, _ map[string]string, _ *string) { secret["GITHUB_TOKEN"] = "x" }, state.DifferentConfiguration,
		},
		"a variable of the provider": {
			func(secret, _ map[string]string, _ *string) { secret["AWS_B64ENCODED_CREDENTIALS"] = "x" },
			state.DifferentVariables,
		},
		"a variable of the additional manifests": {
			func(secret, _ map[string]string, _ *string) { secret["EXTRA"] = "y" }, state.DifferentVariables,
		},
		"image overrides in the Secret": {
			func(secret, _ map[string]string, _ *string) { secret["images"] = "{all: {tag: v2}}" },
			state.DifferentVariables,
		},
		"the additional manifests": {
			func(_, manifests map[string]string, _ *string) {
				manifests[v1alpha2.ConfigMapManifestsKey] += "immutable: true\n"
			},
			state.DifferentManifests,
		},
		"--image-registry": {
			func(_, _ map[string]string, registry *string) { *registry = "mirror.example.com" },
			state.DifferentConfiguration,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(state.Differences(original, inputs(tt.change))).To(Equal([]state.Difference{tt.want}))
		})
	}
}
