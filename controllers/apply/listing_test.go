package apply

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

func TestProgress(t *testing.T) {
	secrets, roles := schema.GroupResource{Resource: "secrets"}, schema.GroupResource{Group: "rbac", Resource: "roles"}
	noon := time.Unix(1000, 0)
	name := func(namespace string, i int) object.Key {
		return object.Key{Namespace: namespace, Name: fmt.Sprint(i)}
	}

	t.Run("a kind that was listed is listed again when that may have changed", func(t *testing.T) {
		g := NewWithT(t)
		p := &Progress{}

		first := p.begin(secrets, noon)
		p.keep(first, name("own", 1), "own")
		p.end(first, noon)
		g.Expect(p.begin(roles, noon)).NotTo(BeNil())

		p.start()
		g.Expect(p.begin(secrets, noon.Add(lastsFor-time.Second))).To(BeNil())
		g.Expect(p.objects()).To(HaveLen(1))

		g.Expect(p.begin(secrets, noon.Add(lastsFor))).NotTo(BeNil())
		g.Expect(p.objects()).To(BeEmpty())
	})

	t.Run("a list that begins again forgets what it had", func(t *testing.T) {
		g := NewWithT(t)
		p := &Progress{}

		l := p.begin(secrets, noon)
		l.next = "token"
		p.keep(l, name("own", 1), "own")
		p.restart(l)
		g.Expect(p.objects()).To(BeEmpty())
		g.Expect(p.begin(secrets, noon).next).To(BeEmpty())
	})

	t.Run("many objects in other namespaces hide none of the release's", func(t *testing.T) {
		g := NewWithT(t)
		p := &Progress{}

		l := p.begin(secrets, noon)
		for i := range v1alpha2.ObjectsMaxItems {
			p.keep(l, name("another", i), "own")
		}

		g.Expect(p.full).To(BeTrue())

		for i := range 100 {
			p.keep(l, name("own", i), "own")
			p.keep(l, name("", i), "own")
		}

		g.Expect(p.objects()).To(HaveLen(200 + maxFar))
		g.Expect(p.objects()[:200]).To(HaveEach(HaveField("Namespace", BeElementOf("", "own"))))

		p.start()
		g.Expect(p.full).To(BeTrue(), "a kind is left")

		p.end(l, noon)
		p.start()
		g.Expect(p.full).To(BeFalse())
		g.Expect(p.begin(secrets, noon)).NotTo(BeNil(), "what was found is deleted, and the others are searched for")
	})

	t.Run("an inventory can have what is found", func(t *testing.T) {
		g := NewWithT(t)
		p := &Progress{}

		l := p.begin(secrets, noon)
		for i := range v1alpha2.ObjectsMaxItems + 1 {
			p.keep(l, name("own", i), "own")
		}

		g.Expect(p.full).To(BeTrue())

		p.keep(l, name("another", 1), "own")
		g.Expect(p.objects()).To(HaveLen(v1alpha2.ObjectsMaxItems))
	})
}

func TestUnlistedError(t *testing.T) {
	g := NewWithT(t)

	kind := func(name, reason string) Unlisted {
		return Unlisted{Resource: schema.ParseGroupResource(name), Reason: reason}
	}
	e := &UnlistedError{Release: "a/b", Kinds: []Unlisted{
		kind("secrets", "it is slow"), kind("owns.test", "it is broken"), kind("roles.rbac", "it is slow"),
	}}
	g.Expect(e).To(MatchError("not all objects of release a/b are known: secrets, roles.rbac cannot be listed yet: " +
		"it is slow; owns.test cannot be listed yet: it is broken"))
	g.Expect(e.Lasting()).To(BeFalse())
	g.Expect(e.NeedsManager()).To(BeFalse())

	e.Kinds[1].Lasting, e.Kinds[1].Own = true, true
	g.Expect(e.Lasting()).To(BeTrue())
	g.Expect(e.NeedsManager()).To(BeFalse(), "the others are listed later")

	e.Kinds = e.Kinds[1:2]
	g.Expect(e.NeedsManager()).To(BeTrue())

	e.Kinds[0].Own = false
	g.Expect(e.NeedsManager()).To(BeFalse(), "another provider defines it")

	for i := range 15 {
		e.Kinds = append(e.Kinds, kind(fmt.Sprintf("kind-%d", i), "it is slow"))
	}

	g.Expect(e).To(MatchError(ContainSubstring("kind-9 and 5 more cannot be listed yet: it is slow")))
	g.Expect(&UnlistedError{Release: "a/b", More: true}).To(MatchError(
		"not all objects of release a/b are known: there are more than are handled at a time"))
}
