package plan

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestTimeOfSources: a source has 30 seconds to list its versions, and 30 for the files of one: a worker waits for it.
func TestTimeOfSources(t *testing.T) {
	g := NewWithT(t)
	version := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "capa-system", Name: "version", Labels: map[string]string{v1alpha2.ConfigMapVersionLabel: "v1.0.0"},
		},
		Data: map[string]string{v1alpha2.ConfigMapMetadataKey: "none", v1alpha2.ConfigMapComponentsKey: "none"},
	}

	var lists, reads []time.Duration

	remaining := func(ctx context.Context) time.Duration {
		deadline, _ := ctx.Deadline()
		return time.Until(deadline)
	}
	c := interceptor.NewClient(writableClient().(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*metav1.PartialObjectMetadataList); ok {
				lists = append(lists, remaining(ctx))
			}

			return c.List(ctx, list, options...)
		},
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
		) error {
			if key == client.ObjectKeyFromObject(version) {
				reads = append(reads, remaining(ctx))
			}

			return c.Get(ctx, key, o, options...)
		},
	})
	g.Expect(c.Create(t.Context(), version)).To(Succeed())

	p := aws("v1.0.0")
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{MatchLabels: version.Labels}}

	_, err := newPlanner(c).Plan(t.Context(), Request{Provider: p, Scope: c})
	g.Expect(err).To(HaveOccurred(), "it is no release")

	for _, times := range [][]time.Duration{lists, reads} {
		g.Expect(times).NotTo(BeEmpty())
		g.Expect(times).To(HaveEach(BeNumerically("~", 30*time.Second, 5*time.Second)))
	}
}
