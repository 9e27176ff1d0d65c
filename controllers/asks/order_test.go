package asks

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// configMap returns a ConfigMap with annotations, given as name and value in turn.
func configMap(name string, annotations ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("ConfigMap")
	o.SetNamespace("ns")
	o.SetName(name)

	set := map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		set[annotations[i]] = annotations[i+1]
	}

	o.SetAnnotations(set)

	return o
}

// TestSplit checks the order of applying and of deleting. Names that begin with "own" are of own kinds.
func TestSplit(t *testing.T) {
	const apply, remove = v1alpha2.ApplyOrderAnnotation, v1alpha2.DeleteOrderAnnotation

	for name, c := range map[string]struct {
		objects          []*unstructured.Unstructured
		applied, deleted string
	}{
		"nothing": {},
		"no annotations": {
			[]*unstructured.Unstructured{configMap("a"), configMap("b")}, "a b", "a b",
		},
		"own kinds": {
			[]*unstructured.Unstructured{configMap("own"), configMap("a")}, "a | own", "own | a",
		},
		"orders": {
			[]*unstructured.Unstructured{
				configMap("late", apply, "7"), configMap("default"), configMap("early", apply, "-32768"),
				configMap("last", apply, "32767"), configMap("own"), configMap("late too", apply, "+7"),
			},
			"early | default | late late too | last | own", "own | last | late late too | default | early",
		},
		"an order for deletions alone": {
			[]*unstructured.Unstructured{
				configMap("a", remove, "3"), configMap("b", apply, "1"), configMap("c"), configMap("d", remove, "-32768"),
			},
			"a c d | b", "d | b | c | a",
		},
		"own kinds with orders": {
			[]*unstructured.Unstructured{
				configMap("own early", apply, "-1"), configMap("early", apply, "-1"), configMap("a"), configMap("own"),
				configMap("own with a", remove, "0", apply, "0"),
			},
			"early | own early | a | own with a | own", "own | own with a | a | own early | early",
		},
		"invalid orders, of what another program has installed": {
			[]*unstructured.Unstructured{configMap("a", apply, "first"), configMap("b", remove, "32768")}, "a b", "a b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			isOwn := func(o *unstructured.Unstructured) bool { return strings.HasPrefix(o.GetName(), "own") }

			g.Expect(names(Split(c.objects, func(o *unstructured.Unstructured) Place {
				return OrderOf(o).Applied(isOwn(o))
			}))).To(Equal(c.applied))
			g.Expect(names(Split(c.objects, func(o *unstructured.Unstructured) Place {
				return OrderOf(o).Deleted(isOwn(o))
			}))).To(Equal(c.deleted))
		})
	}
}

func names(waves [][]*unstructured.Unstructured) string {
	all := make([]string, 0, len(waves))

	for _, wave := range waves {
		names := make([]string, 0, len(wave))
		for _, o := range wave {
			names = append(names, o.GetName())
		}

		all = append(all, strings.Join(names, " "))
	}

	return strings.Join(all, " | ")
}

func TestHold(t *testing.T) {
	g := NewWithT(t)
	objects := []*unstructured.Unstructured{
		configMap("own"), configMap("third", v1alpha2.ApplyOrderAnnotation, "9"), configMap("first"),
		configMap("second", v1alpha2.ApplyOrderAnnotation, "8"),
	}
	isOwn := func(o *unstructured.Unstructured) bool { return o.GetName() == "own" }

	held := Hold(objects, isOwn, Order{}.Applied(false))
	g.Expect(held).To(HaveExactElements(
		HaveField("Object.Name", "second"), HaveField("Object.Name", "third"),
		And(HaveField("Object.Name", "own"), HaveField("Own", true))))
	g.Expect(held[0].Reason()).To(Equal(
		"is applied with capstan.dev/apply-order 8, once all objects that come before are healthy"))
	g.Expect(held[2].Reason()).To(Equal("is applied once the provider's manager is healthy"))

	g.Expect(Hold(objects, isOwn, held[1].Place)).To(HaveLen(1))
	g.Expect(Hold(objects, isOwn, held[2].Place)).To(BeEmpty())
}

func TestCheckOrders(t *testing.T) {
	many := make([]*unstructured.Unstructured, 0, maxOrders+1)
	for i := range maxOrders + 1 {
		many = append(many, configMap("a", v1alpha2.ApplyOrderAnnotation, fmt.Sprint(i)))
	}

	NewWithT(t).Expect(Check(append(many[1:], configMap("b", v1alpha2.DeleteOrderAnnotation, "-1")))).To(Succeed())
	NewWithT(t).Expect(Check(many)).To(MatchError(ContainSubstring(
		"the annotation capstan.dev/apply-order has 101 different values, more than 100")))

	for _, value := range []string{"", "first", "1.5", "32768", "-32769", " 1", "99999999999999999999"} {
		err := Check([]*unstructured.Unstructured{configMap("a"), configMap("b", v1alpha2.DeleteOrderAnnotation, value)})
		NewWithT(t).Expect(err).To(MatchError(
			"the annotation capstan.dev/delete-order of ConfigMap ns/b must be an integer from -32768 to 32767"), value)
	}
}
