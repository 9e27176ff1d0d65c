package object

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	g.Expect(entries).To(Equal([]string{
		"_system__metrics_reader_rbac.authorization.k8s.io_ClusterRole_v1",
		"ns_a.b__Secret_v1",
		"ns_manager_apps_Deployment_v1",
	}))
	g.Expect(KeysOfInventory(entries)).To(Equal([]Key{role, secret, manager}))
	g.Expect(KeysOfInventory([]string{"nonsense", "ns_a__Secret"})).To(BeEmpty())
}

func TestSetsOfKeys(t *testing.T) {
	g := NewWithT(t)

	older := manager
	older.Version = "v1beta1"

	g.Expect(Union([]Key{older}, []Key{manager, secret})).To(Equal([]Key{older, secret}))
	g.Expect(Union([]Key{older, manager, secret}, nil)).To(Equal([]Key{older, secret}))
	g.Expect(Without([]Key{older, secret}, []Key{manager})).To(Equal([]Key{secret}))
}
