package fresh_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/fresh"
)

func TestListsShow(t *testing.T) {
	type versions = map[string]string

	for name, c := range map[string]struct {
		known, cached versions
		want          bool
	}{
		"nothing":                       {versions{}, versions{}, true},
		"the same":                      {versions{"a": "9", "b": "10"}, versions{"a": "9", "b": "10"}, true},
		"a newer version":               {versions{"a": "9"}, versions{"a": "10"}, true},
		"a newer object":                {versions{"a": "9"}, versions{"a": "9", "b": "10"}, true},
		"a first object":                {versions{}, versions{"a": "9"}, true},
		"an older version":              {versions{"a": "10", "b": "9"}, versions{"a": "9", "b": "9"}, false},
		"not the object that was added": {versions{"a": "9", "b": "10"}, versions{"a": "9"}, false},
		"an object that was deleted":    {versions{"b": "10"}, versions{"a": "9", "b": "10"}, false},
		"nothing that can be compared":  {versions{"a": "9"}, versions{"a": "new"}, false},
		"something that cannot":         {versions{"a": "9"}, versions{"a": "9", "b": "new"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			lists := fresh.Lists[string]{}
			NewWithT(t).Expect(lists.Shows("list", c.cached)).To(BeFalse(), "nothing is known yet")

			lists.Set("list", c.known)
			NewWithT(t).Expect(lists.Shows("list", c.cached)).To(Equal(c.want))
		})
	}
}

func TestListsRemember(t *testing.T) {
	g := NewWithT(t)
	lists := fresh.Lists[string]{}

	lists.Note("list", "a", "5")
	g.Expect(lists.Shows("list", map[string]string{"a": "5"})).To(BeFalse(), "there may be other objects")

	lists.Set("list", map[string]string{"a": "5"})
	lists.Note("list", "a", "6")
	g.Expect(lists.Shows("list", map[string]string{"a": "5"})).To(BeFalse())
	g.Expect(lists.Shows("list", map[string]string{"a": "7"})).To(BeTrue())
	g.Expect(lists.Shows("list", map[string]string{"a": "6"})).To(BeFalse(), "a newer version was shown before")
	g.Expect(lists.Shows("other list", map[string]string{"a": "7"})).To(BeFalse())

	lists.Set("list", map[string]string{"a": "6", "b": "8"})
	g.Expect(lists.Shows("list", map[string]string{"a": "6", "b": "8"})).To(BeFalse(), "a was written after it was read")
	g.Expect(lists.Shows("list", map[string]string{"a": "7", "b": "8"})).To(BeTrue())

	lists.Set("list", map[string]string{"a": "7"})
	g.Expect(lists.Shows("list", map[string]string{"a": "7"})).To(BeTrue(), "b was deleted")

	lists.Forget("list")
	g.Expect(lists.Shows("list", map[string]string{"a": "7"})).To(BeFalse())
}
