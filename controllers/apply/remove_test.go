package apply

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestRemoveAggregatedFirst: Kubernetes creates an aggregated ClusterRole again if it is deleted after a role that it
// gathers rules from.
func TestRemoveAggregatedFirst(t *testing.T) {
	const header = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "

	for name, remove := range map[string]func(*Client, Objects) (Results, error){
		"at once": (*Client).remove, "before others": (*Client).removeCompletely,
	} {
		t.Run(name, func(t *testing.T) {
			var (
				list  Objects
				gone  atomic.Bool
				early atomic.Int32
			)

			for i := range 8 {
				list = append(list, parse(t, fmt.Sprintf("%spart-%d}}", header, i)))
			}

			list = slices.Insert(list, len(list)/2, parse(t, header+"whole}, aggregationRule: {clusterRoleSelectors: []}}"))

			roles := interceptor.NewClient(nil, interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					switch {
					case o.GetName() == "whole":
						gone.Store(true)
					case !gone.Load():
						early.Add(1)
					}

					return nil
				},
				Get: func(
					_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption,
				) error {
					return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
				},
			})

			g := NewWithT(t)
			c := &Client{ctx: t.Context(), connection: &Connection{client: roles}}
			results, err := remove(c, list)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(gone.Load()).To(BeTrue())
			g.Expect(early.Load()).To(BeZero())
			g.Expect(results.With(Deleted)).To(HaveLen(len(list)))
		})
	}
}

func TestRemains(t *testing.T) {
	for object, want := range map[string]bool{
		`{kind: Deployment, metadata: {name: a}}`:                                                          true,
		`{kind: Deployment, metadata: {name: a, deletionTimestamp: "2026-12-01T00:00:00Z"}}`:               false,
		`{kind: Deployment, metadata: {name: a, annotations: {helm.sh/resource-policy: keep}}}`:            false,
		`{kind: CustomResourceDefinition, metadata: {name: a}}`:                                            false,
		`{kind: Namespace, metadata: {name: a, annotations: {helm.sh/resource-policy: keep}}}`:             false,
		`{kind: CustomResourceDefinition, metadata: {name: a, deletionTimestamp: "2026-12-01T00:00:00Z"}}`: false,
	} {
		NewWithT(t).Expect(remains(parse(t, object))).To(Equal(want), object)
	}
}
