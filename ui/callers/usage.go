package callers

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/usage"
)

// maxKinds is how many kinds one page asks the API server about. Objects of the others are not shown.
const maxKinds = 64

// Visible returns the objects of the kinds that the caller may list in all namespaces. The other kinds are only
// counted, whether they have objects or not.
func (v *view) Visible(ctx context.Context, found []facts.Usage) ([]facts.Usage, error) {
	everything, err := v.caller.may(ctx, "list", schema.GroupResource{Group: "*", Resource: "*"}, "")
	if err != nil || everything {
		return found, err
	}

	places := placesOf(found)
	if err := v.caller.mayEach(ctx, "list", places); err != nil {
		return nil, err
	}

	isHidden := func(name string) bool { return !places[placeOf(name)] }
	visible := make([]facts.Usage, 0, len(found))

	for _, f := range found {
		seen := facts.Usage{Kinds: slices.Clone(f.Kinds), Searched: slices.Clone(f.Searched)}
		seen.Kinds = slices.DeleteFunc(seen.Kinds, func(k usage.Kind) bool { return isHidden(k.Name) })
		seen.Searched = slices.DeleteFunc(seen.Searched, isHidden)
		seen.Unseen = len(f.Searched) - len(seen.Searched)
		visible = append(visible, seen)
	}

	return visible, nil
}

// placesOf returns the resources that have to be asked about, first those that have objects.
func placesOf(found []facts.Usage) map[place]bool {
	places := map[place]bool{}

	add := func(name string) {
		if len(places) < maxKinds {
			places[placeOf(name)] = false
		}
	}

	for _, f := range found {
		for _, k := range f.Kinds {
			add(k.Name)
		}
	}

	for _, f := range found {
		for _, name := range f.Searched {
			add(name)
		}
	}

	return places
}

// placeOf returns all objects of the kind that a CRD defines.
func placeOf(crd string) place { return place{GroupResource: schema.ParseGroupResource(crd)} }
