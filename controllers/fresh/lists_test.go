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

func TestAllLists(t *testing.T) {
	type versions = map[string]string

	for name, c := range map[string]struct {
		before   func(*fresh.Lists[string]) // what is known before all lists are
		all      versions                   // of the list
		cached   versions
		wantShow bool
	}{
		"the same":                       {all: versions{"a": "5"}, cached: versions{"a": "5"}, wantShow: true},
		"a cache that lags":              {all: versions{"a": "5"}, cached: versions{"a": "4"}},
		"a list that did not exist":      {cached: versions{}, wantShow: true},
		"one that was created since":     {cached: versions{"a": "6"}, wantShow: true},
		"one that the cache has not yet": {all: versions{"a": "5"}, cached: versions{}},
		"what was written meanwhile": {
			before: func(l *fresh.Lists[string]) { l.Set("list", versions{"a": "6"}) },
			all:    versions{"a": "5"}, cached: versions{"a": "5"},
		},
		"what was created meanwhile": {
			before: func(l *fresh.Lists[string]) { l.Set("list", versions{"a": "5", "b": "6"}) },
			all:    versions{"a": "5"}, cached: versions{"a": "5"},
		},
		"what was forgotten": {
			before: func(l *fresh.Lists[string]) { l.Forget("list") },
			all:    versions{"a": "5"}, cached: versions{"a": "5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lists := fresh.Lists[string]{}
			if c.before != nil {
				c.before(&lists)
			}

			all := map[string]map[string]string{}
			if c.all != nil {
				all["list"] = c.all
			}

			lists.SetAll(all)
			NewWithT(t).Expect(lists.Shows("list", c.cached)).To(Equal(c.wantShow))

			lists.Forget("list")
			NewWithT(t).Expect(lists.Shows("list", c.cached)).To(BeFalse(), "it was deleted since")
		})
	}
}
