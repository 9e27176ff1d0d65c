package crds

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("Inventory", func() {
	It("lists each CRD with its provider, its versions and its state", func(ctx SpecContext) {
		k := newKind("ea")
		k.define(ctx, "v1beta1")
		k.create(ctx, "v1beta1", 0, 7)
		k.define(ctx, "v1", "v1beta1")

		orphan := definitionOf("eb", "v1")
		request := wants(fileOf(orphan))
		Expect(apply(ctx, request)).To(HaveLen(1))

		foreign := definitionOf("ec", "v1")
		exists(ctx, foreign, "clusterctl")
		served(ctx, request.Files...)

		provider := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "target", Name: "x"}}
		provider.Status.OrphanedCRDs = []string{orphan.Name}
		find := func(name string, providers ...v1alpha2.Provider) Item {
			GinkgoHelper()

			items, err := Inventory(ctx, live, applier.Metadata, providers)
			Expect(err).NotTo(HaveOccurred())

			for _, item := range items {
				if item.Name == name {
					return item
				}
			}

			Fail(name + " is not listed")

			return Item{}
		}
		item := find(k.crd(), provider)
		Expect(item.Objects).To(gstruct.PointTo(Equal(int64(7))))
		item.Objects = nil
		Expect(item).To(Equal(Item{
			Name:      k.crd(),
			Provider:  "infrastructure-x",
			Version:   "v1.1.0",
			Resource:  "InfrastructureProvider target/x",
			Namespace: "target",
			Served:    []string{"v1", "v1beta1"},
			Storage:   "v1",
			Stored:    []string{"v1beta1", "v1"},
			State:     Managed,
		}))
		Expect(find(orphan.Name, provider).State).To(Equal(Orphaned))
		Expect(find(foreign.Name, provider).State).To(Equal(Unmanaged))
		Expect(find(k.crd()).State).To(Equal(Orphaned), "its provider is gone")

		edit(ctx, k.crd(), func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Annotations[migrationAnnotation] = `{"to":"v1","done":4,"total":7}`
		})

		item = find(k.crd(), provider)
		Expect(item.State).To(Equal(Migrating))
		Expect(item.Progress.String()).To(Equal("migrated 4 of 7 objects of eas.example.com"))
	})
})
