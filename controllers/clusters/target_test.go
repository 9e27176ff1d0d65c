package clusters

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// records is a cache of Helm's records that answers as a test says.
type records struct {
	cache.Cache
	synced bool
	found  int
	err    error
}

// startedInformer is an informer that has or has not synced.
type startedInformer struct {
	cache.Informer
	synced bool
}

func (i startedInformer) HasSynced() bool { return i.synced }

func (r records) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return startedInformer{synced: r.synced}, nil
}

func (r records) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*metav1.PartialObjectMetadataList).Items = make([]metav1.PartialObjectMetadata, r.found)
	return r.err
}

func TestMayHaveRelease(t *testing.T) {
	for name, test := range map[string]struct {
		records  records
		expected bool
	}{
		"no record":              {records{synced: true}, false},
		"a record":               {records{synced: true, found: 1}, true},
		"not synced yet":         {records{}, true},
		"a namespace not cached": {records{synced: true, err: errors.New("unknown namespace")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			target := &Target{history: test.records}
			release := types.NamespacedName{Namespace: "capa-system", Name: "infrastructure-aws"}
			NewWithT(t).Expect(target.MayHaveRelease(t.Context(), release)).To(Equal(test.expected))
		})
	}
}
