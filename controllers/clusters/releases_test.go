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

	"github.com/capstan-project/capstan/controllers/release/storage"
)

// records is a cache of Helm's records that answers as a test says.
type records struct {
	cache.Cache
	synced bool
	found  []metav1.PartialObjectMetadata
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
	list.(*metav1.PartialObjectMetadataList).Items = r.found
	return r.err
}

// record returns the record of a revision of Capstan's in a namespace.
func record(namespace, status string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Labels: map[string]string{storage.RevisionLabel: "1", "version": "1", "status": status},
	}}
}

func TestMayHaveRelease(t *testing.T) {
	for name, test := range map[string]struct {
		records  records
		expected bool
	}{
		"no record":              {records{synced: true}, false},
		"a record":               {records{synced: true, found: list(record("a", "deployed"))}, true},
		"not synced yet":         {records{}, true},
		"a namespace not cached": {records{synced: true, err: errors.New("unknown namespace")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			target := &Target{cluster: &Cluster{History: test.records}}
			release := types.NamespacedName{Namespace: "capa-system", Name: "infrastructure-aws"}
			NewWithT(t).Expect(target.MayHaveRelease(t.Context(), release)).To(Equal(test.expected))
		})
	}
}

func TestInstalledElsewhere(t *testing.T) {
	foreign := record("team", "deployed")
	delete(foreign.Labels, storage.RevisionLabel)

	for name, test := range map[string]struct {
		records  records
		expected string
	}{
		"nowhere":                 {records{synced: true}, ""},
		"not synced yet":          {records{}, ""},
		"in two other namespaces": {records{synced: true, found: list(record("b", "deployed"), record("a", "failed"))}, "a"},
		"one namespace is ignored": {
			records{synced: true, found: list(record("ignored", "deployed"), record("b", "x"))}, "b",
		},
		"only where it is ignored": {records{synced: true, found: list(record("ignored", "deployed"))}, ""},
		"in the own namespace too": {records{synced: true, found: list(record("b", "deployed"), record("capa", "x"))}, ""},
		"uninstalled by helm":      {records{synced: true, found: list(record("b", "uninstalled"))}, ""},
		"by another program":       {records{synced: true, found: list(foreign)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			target := &Target{cluster: &Cluster{History: test.records}}
			release := types.NamespacedName{Namespace: "capa", Name: "infrastructure-aws"}
			ignored := func(namespace string) bool { return namespace == "ignored" }
			NewWithT(t).Expect(target.InstalledElsewhere(t.Context(), release, ignored)).To(Equal(test.expected))
		})
	}
}

func list(records ...metav1.PartialObjectMetadata) []metav1.PartialObjectMetadata { return records }
