package safety

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// enough broken objects prove the point; the rest of a kind is not looked at then.
const enough = 100

// look reads the objects in each version in which something was found, and notes on the findings
// what breaks.
func (c *comparison) look(ctx context.Context, objects Objects) error {
	for _, p := range c.pairs {
		if p.served && slices.ContainsFunc(p.findings, func(f *Finding) bool { return f.Level != Info }) {
			c.looks[p.from.Name] = nil
		}
	}

	if len(c.gone) > 0 && c.base() != "" {
		c.looks[c.base()] = nil
	}

	for version := range c.looks {
		l, err := c.lookIn(ctx, objects, version)
		if err != nil {
			return err
		}

		c.looks[version] = l
	}

	return nil
}

// base is the version in which objects are read when any will do: the one they are stored in, if it
// is served.
func (c *comparison) base() string {
	name := ""
	for _, v := range c.live.Spec.Versions {
		if v.Served && (name == "" || v.Storage) {
			name = v.Name
		}
	}

	return name
}

func (c *comparison) lookIn(ctx context.Context, objects Objects, version string) (*Look, error) {
	l := &Look{CRD: c.live.Name, Version: version}

	var trials []*trial

	for object, err := range objects.All(ctx, c.resource(version)) {
		if err != nil {
			return c.unread(l, err)
		}

		if l.Objects == 0 {
			if trials, err = c.trials(version); err != nil {
				return nil, err
			}
		}

		l.Objects++
		if c.try(ctx, trials, object) {
			l.Broken++
		}

		if l.Broken >= enough {
			l.Partial = true
			break
		}
	}

	return l, nil
}

// unread decides what it means that objects could not be read. When a conversion webhook does not
// answer, nobody can read them in this version, and the upgrade may be the cure; everything else
// must be in order before anything is judged.
func (c *comparison) unread(l *Look, err error) (*Look, error) {
	if base := c.base(); l.Version == base || !converts(c.live) || !apierrors.IsInternalError(err) {
		return nil, fmt.Errorf(
			"read the %s in version %s, to see whether the new CustomResourceDefinition breaks any: %w",
			c.live.Name,
			l.Version,
			err,
		)
	}

	l.Failed = err.Error()
	c.add(
		RuleUnchecked,
		l.Version,
		"the objects could not be read in this version, so nothing was tried on them: %s",
		quoted(l.Failed),
	)

	return l, nil
}

// trials prepares what is tried on each object of a version.
func (c *comparison) trials(version string) ([]*trial, error) {
	var trials []*trial

	for _, p := range c.pairs {
		if p.from.Name != version || len(p.findings) == 0 {
			continue
		}

		t, err := newTrial(c, p)
		if err != nil {
			return nil, err
		}

		trials = append(trials, t)
	}

	return trials, nil
}

// try reports whether an object breaks.
func (c *comparison) try(ctx context.Context, trials []*trial, object *unstructured.Unstructured) bool {
	for _, f := range c.gone {
		group := schema.GroupVersion{Group: c.live.Spec.Group, Version: f.Version}.String()
		for _, entry := range object.GetManagedFields() {
			if entry.APIVersion == group {
				f.note(object, "metadata.managedFields", true)
			}
		}
	}

	broken := false
	for _, t := range trials {
		broken = t.try(ctx, object) || broken
	}

	return broken
}

// note counts an object that a finding breaks, once, and keeps a few as examples.
func (f *Finding) note(object *unstructured.Unstructured, path string, stuck bool) {
	const examples, fields = 3, 3

	f.stuck = f.stuck || stuck
	if f.last != object {
		f.last = object

		f.Affected++
		if len(f.Examples) < examples {
			f.Examples = append(f.Examples, Example{Namespace: object.GetNamespace(), Name: object.GetName()})
		}
	}

	if f.Affected > examples {
		return
	}

	e := &f.Examples[f.Affected-1]
	if path != "" && len(e.Fields) < fields && !slices.Contains(e.Fields, path) {
		e.Fields = append(e.Fields, path)
	}
}

// judge gives the findings their levels in the light of what was seen and of who is known to use a
// version.
func (c *comparison) judge(clients map[schema.GroupVersionResource][]string) {
	for _, f := range c.gone {
		if users := clients[c.resource(f.Version)]; len(users) > 0 {
			f.Level = Stop
			f.Message += fmt.Sprintf(", and %s uses it", quoted(fmt.Sprint(users)))

			continue
		}

		f.judge(c.looks[c.base()])
	}

	for _, p := range c.pairs {
		for _, f := range p.findings {
			f.judge(c.looks[p.from.Name])
		}
	}
}

// judge sets the level: a Stop is what breaks an object that exists, or what could and was not
// tried. What is wrong with an object's status alone is no Stop as long as the object can be
// updated: its controller writes the status anew.
func (f *Finding) judge(l *Look) {
	t := ruleTraits[f.Rule]

	tried := l != nil && l.Failed == "" && !l.Partial
	switch {
	case t.final || f.Level == Info:
	case f.Affected > 0 && (f.stuck || !inStatus(f.Path)):
		f.Level = Stop
	case f.Affected > 0:
		f.Level = Warning
	case tried && (t.remedy == remedyObjects || t.remedy == remedyData || t.remedy == remedyClients):
		f.Level, f.Remedy = Warning, ""
		f.Message += "; no object is affected"
	}
}
