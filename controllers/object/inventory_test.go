package object

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var (
	role = Key{
		GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		Name:             "system:metrics_reader",
	}
	secret = Key{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Namespace:        "ns", Name: "a.b",
	}
	manager = Key{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Namespace:        "ns", Name: "manager",
	}
)

func TestInventory(t *testing.T) {
	g := NewWithT(t)

	entries := Inventory([]Key{manager, secret, role, manager})
	g.Expect(entries).To(Equal([]v1alpha2.InventoryEntry{
		{ID: "_system__metrics_reader_rbac.authorization.k8s.io_ClusterRole", Version: "v1"},
		{ID: "ns_a.b__Secret", Version: "v1"},
		{ID: "ns_manager_apps_Deployment", Version: "v1"},
	}))
	g.Expect(KeysOfInventory(entries)).To(Equal([]Key{role, secret, manager}))
	g.Expect(KeysOfInventory([]v1alpha2.InventoryEntry{{ID: "nonsense", Version: "v1"}})).To(BeEmpty())
}

func TestSetsOfKeys(t *testing.T) {
	g := NewWithT(t)

	older := manager
	older.Version = "v1beta1"

	g.Expect(Union([]Key{older}, []Key{manager, secret})).To(Equal([]Key{older, secret}))
	g.Expect(Union([]Key{older, manager, secret}, nil)).To(Equal([]Key{older, secret}))
	g.Expect(Without([]Key{older, secret}, []Key{manager})).To(Equal([]Key{secret}))
}
