package inventory

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

var (
	role = object.Key{
		GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		Name:             "system:metrics_reader",
	}
	secret = object.Key{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Namespace:        "ns", Name: "a.b",
	}
	manager = object.Key{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Namespace:        "ns", Name: "manager",
	}
)

func TestFormat(t *testing.T) {
	g := NewWithT(t)

	entries := Entries([]object.Key{manager, secret, role, manager})
	g.Expect(entries).To(Equal([]v1alpha2.InventoryEntry{
		{ID: "_system__metrics_reader_rbac.authorization.k8s.io_ClusterRole", Version: "v1"},
		{ID: "ns_a.b__Secret", Version: "v1"},
		{ID: "ns_manager_apps_Deployment", Version: "v1"},
	}))
	g.Expect(Keys(entries)).To(Equal([]object.Key{role, secret, manager}))
	g.Expect(Keys([]v1alpha2.InventoryEntry{{ID: "nonsense", Version: "v1"}})).To(BeEmpty())
}

func TestSets(t *testing.T) {
	g := NewWithT(t)

	older := manager
	older.Version = "v1beta1"

	g.Expect(Union([]object.Key{older}, []object.Key{manager, secret})).To(Equal([]object.Key{older, secret}))
	g.Expect(Union([]object.Key{older, manager, secret}, nil)).To(Equal([]object.Key{older, secret}))
	g.Expect(Without([]object.Key{older, secret}, []object.Key{manager})).To(Equal([]object.Key{secret}))
}
