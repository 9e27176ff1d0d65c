package view

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Sides are the numbers of the two revisions of a release that are compared; 0 is the newest one.
type Sides struct{ From, To int }

// ContextLines is the number of unchanged lines around changes.
const ContextLines = 3

// Comparison is how the objects of a release differ between two states of it. It has no values of Secrets and of
// variables.
type Comparison struct {
	// From and To are versions of the provider.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Changes lead from one state to the other.
	Changes []objectdiff.Change `json:"changes,omitempty"`
	// Withheld is why the changes have no contents; empty if they have.
	Withheld string `json:"withheld,omitempty"`
}

// compared is one of the states that are compared.
type compared struct {
	revision state.Revision
	record   *release.Record
}

// Compare compares two revisions of a provider's release.
func (r *Reader) Compare(ctx context.Context, p v1alpha2.Provider, sides Sides) (Comparison, error) {
	if p.GetSpec().KubeConfig != nil {
		return Comparison{}, fmt.Errorf("the release of %s is in another cluster, whose objects are not read",
			v1alpha2.FullName(p))
	}

	observed, err := r.Observe(ctx, p)
	if err != nil {
		return Comparison{}, err
	}

	if newest, exists := observed.Newest(); exists {
		sides.From, sides.To = cmp.Or(sides.From, newest.Number), cmp.Or(sides.To, newest.Number)
	}

	before, err := r.compared(ctx, p, observed, sides.From)
	if err != nil {
		return Comparison{}, err
	}

	after, err := r.compared(ctx, p, observed, sides.To)
	if err != nil {
		return Comparison{}, err
	}

	return compare(p, observed, before, after)
}

// compared reads a revision.
func (r *Reader) compared(
	ctx context.Context, p v1alpha2.Provider, observed state.History, number int,
) (compared, error) {
	revision, err := FindRevision(p, observed, number)
	if err != nil {
		return compared{}, err
	}

	record, err := r.Releases.Read(ctx, observed.Release, revision)
	if err != nil {
		return compared{}, err
	}

	return compared{revision, record}, nil
}

// FindRevision returns the revision of a provider's release with a number.
func FindRevision(p v1alpha2.Provider, observed state.History, number int) (state.Revision, error) {
	if revision, exists := observed.Find(number); exists {
		return revision, nil
	}

	return state.Revision{}, fmt.Errorf("release %s has no revision %d; `capstan history %s` lists the revisions",
		observed.Release, number, v1alpha2.Label(p))
}

// CompareWithPlan compares the newest revision of a provider's release, whose record is empty if there is none, with
// what is planned.
func CompareWithPlan(
	p v1alpha2.Provider, observed state.History, newest, planned *release.Record,
) (Comparison, error) {
	before, exists := observed.Newest()
	if !exists {
		before = nextRevision
	}

	return compare(p, observed, compared{before, newest}, compared{nextRevision, planned})
}

// Masker returns what removes the values of variables from the objects of a release that is planned for a provider.
func Masker(p v1alpha2.Provider, record *release.Record) *objectdiff.Masker {
	values := compared{revision: nextRevision, record: record}.secrets(p)

	return objectdiff.NewMasker(values, values)
}

// nextRevision is what is planned: it will be one of Capstan's.
var nextRevision = state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1}, Origin: 1}

// compare compares two states without values of variables. Observed has all revisions of the release.
func compare(p v1alpha2.Provider, observed state.History, before, after compared) (Comparison, error) {
	c := Comparison{From: before.record.AppVersion, To: after.record.AppVersion}
	masker := objectdiff.NewMasker(before.secrets(p), after.secrets(p))

	old, changed := masker.Objects(before.record.Objects), masker.Objects(after.record.Objects)

	changes, err := objectdiff.Compare(old, changed, ContextLines)
	c.Changes = changes
	c.withhold(p, observed)

	return c, err
}

// secrets returns the values that a revision was rendered with, by the names of variables. Values of variables that
// are in the resource itself are no secrets. Another program may have set any value.
func (c compared) secrets(p v1alpha2.Provider) map[string]string {
	found := map[string]string{}
	if !c.revision.Ours() {
		addTexts(found, "value", c.record.Values)
	}

	variables, _ := c.record.Values["variables"].(map[string]any)
	addTexts(found, "", variables)

	maps.DeleteFunc(found, func(name, value string) bool {
		own, exists := p.GetSpec().Variables[name]
		return exists && own == value
	})

	return found
}

// addTexts adds the texts and numbers in values by their paths.
func addTexts(found map[string]string, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if path != "" {
				key = path + "." + key
			}

			addTexts(found, key, child)
		}
	case []any:
		for i, child := range value {
			addTexts(found, fmt.Sprintf("%s[%d]", path, i), child)
		}
	case nil, bool:
	default:
		found[path] = fmt.Sprint(value)
	}
}

// withhold removes the contents of the changes if they may have values of the Secret with variables that no record has:
// additional manifests can use variables that the chart has not, and the Secret may have had others before.
func (c *Comparison) withhold(p v1alpha2.Provider, observed state.History) {
	_, hasSecret := p.GetSpec().VariablesSecret(p.GetNamespace())
	may := hasSecret && p.GetSpec().AdditionalManifests != nil ||
		slices.ContainsFunc(observed.Revisions, func(r state.Revision) bool {
			return r.Inputs.Manifests != "" && r.Inputs.Variables != ""
		})

	if !may {
		return
	}

	c.Withheld = "The contents are not shown, because values of variables in the additional manifests may be among them."

	for i := range c.Changes {
		c.Changes[i].Diff = ""
	}
}
