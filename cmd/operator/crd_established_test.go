package main

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/charts"
)

// condition returns a condition of a CustomResourceDefinition.
func condition(name, status, message string) any {
	return map[string]any{"type": name, "status": status, "message": message}
}

func TestAwaitCRDs(t *testing.T) {
	established := []any{condition("NamesAccepted", "True", ""), condition("Established", "True", "")}

	for name, c := range map[string]struct {
		// states are the conditions of the first CustomResourceDefinition, one after the other; nil if it does
		// not exist.
		states [][]any
		// failures is how many looks fail before.
		failures int
		// slow looks fail at the end of the time.
		slow bool
		err  string // empty for success
	}{
		"served":       {states: [][]any{established}},
		"served later": {states: [][]any{{}, {condition("Established", "False", "installing")}, established}},
		"missing": {
			states: [][]any{nil},
			err: "addonproviders.operator.cluster.x-k8s.io: it is not installed; apply the CRDs of this version, " +
				"from crds/ in the chart or from the release's capstan.yaml",
		},
		"another has its names": {
			states: [][]any{{
				condition("NamesAccepted", "False", `"caap" is already in use`),
				condition("Established", "False", ""),
			}},
			err: `addonproviders.operator.cluster.x-k8s.io: the API server does not serve it: "caap" is already in use`,
		},
		"the API server starts again": {states: [][]any{established}, failures: 2},
		"the API server does not answer": {
			states: [][]any{established}, failures: 1000,
			err: "addonproviders.operator.cluster.x-k8s.io: the API server does not serve it: the last look failed: " +
				"connection refused",
		},
		"the API server does not answer in time": {
			states: [][]any{established}, failures: 1000, slow: true,
			err: "addonproviders.operator.cluster.x-k8s.io: the API server does not serve it: the last look failed: " +
				"connection refused",
		},
		"without conditions": {states: [][]any{{}}, err: "the API server has not looked at it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			definitions, err := charts.CRDs()
			g.Expect(err).NotTo(HaveOccurred())

			var objects []client.Object

			for i, definition := range definitions {
				if i == 0 && c.states[0] == nil {
					continue
				}

				g.Expect(unstructured.SetNestedSlice(definition.Object, established, "status", "conditions")).To(Succeed())
				objects = append(objects, definition)
			}

			looks, failures := 0, c.failures
			get := func(
				ctx context.Context, reader client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption,
			) error {
				if failures > 0 {
					failures--

					if c.slow {
						<-ctx.Done()
					}

					return errors.New("connection refused")
				}

				if err := reader.Get(ctx, key, o); err != nil || key.Name != definitions[0].GetName() {
					return err
				}

				state := c.states[min(looks, len(c.states)-1)]
				looks++

				return unstructured.SetNestedSlice(o.(*unstructured.Unstructured).Object, state, "status", "conditions")
			}
			reader := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(objects...).
				WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()

			err = awaitCRDs(t.Context(), reader, time.Second)
			if c.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(looks).To(Equal(len(c.states)))

				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(c.err)))
		})
	}
}
