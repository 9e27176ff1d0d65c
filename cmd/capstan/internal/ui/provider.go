package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// Provider is the page of one provider.
type Provider struct {
	Frame

	Card Card
	// TypeName is the provider's type in words, Resource its kind and name.
	TypeName, Resource string
	Conditions         []Condition
	Upgrades           []Upgrade
	Release            string
	Objects            Objects
	History            History
	// ComparePath is that of the comparison with the cluster.
	ComparePath string
	Source      Source
	Images      []string
	Variables   []Variable
	CRDs        []CRD
	Events      []Event
	// Unknown are what could not be read, with the reasons.
	Unknown []string
	// StatusCommand and HistoryCommand print the same.
	StatusCommand, HistoryCommand string
}

// Condition is a condition of the resource. Its level is "good" or "bad".
type Condition struct{ Level, Type, Status, Reason, Message, Age string }

// Upgrade is a version that the provider can be upgraded to, with the command that prints what that would change.
type Upgrade struct{ Version, Contract, Command string }

// Objects are the objects of the release, those with problems first.
type Objects struct {
	Healthy, Total int
	Items          []Object
}

// Object is an object of the release. Its level is "good", "busy" or "bad".
type Object struct{ Level, Kind, Name, Status, Message string }

// History is the history of the release, newest first.
type History struct {
	Revisions []Revision
	// Note is why the history is incomplete; empty if it is not.
	Note string
}

// Revision is a revision of the release. Its level is "good", "busy", "bad" or, if it was replaced, "past".
type Revision struct {
	Level, Number, Version, Status, Age, Time string
	By, Reason, Health, Digest, Description   string
	// ComparePath is that of the comparison with the revision before; empty for the oldest one.
	Command, ComparePath string
}

// Source is where the provider comes from.
type Source struct {
	Chart, Digest, From, Stored string
	Trust                       []string
}

// Variable is a variable without its value.
type Variable struct {
	Name, From string
	Missing    bool
}

// CRD is a CustomResourceDefinition.
type CRD struct {
	Name, Served, Storage, Stored string
	Migrated                      bool
}

// Event is an event of the resource. Its level is "good" or "bad".
type Event struct{ Level, Age, Time, Reason, Message, Count string }

// The levels of what is on a page.
const (
	levelGood = "good"
	levelBusy = "busy"
	levelBad  = "bad"
	levelPast = "past"
)

// newProvider returns the page of a provider. The note is why its history is incomplete; empty if it is not.
func newProvider(frame Frame, v view.Provider, history []view.Revision, note string) *Provider {
	p := &Provider{
		Frame:    frame,
		Card:     newCard(frame, v),
		TypeName: typeNames[v1alpha2.ProviderType(v.Kind)],
		Resource: v.Kind + " " + v.Namespace + "/" + v.Name,
		Objects:  newObjects(v.Objects),
		History:  newHistory(frame, v, history, note),
		Source:   newSource(v),

		ComparePath: frame.Base + comparePath(v, 0, 0),

		StatusCommand:  command(v, "status"),
		HistoryCommand: command(v, "history"),
	}

	if ready := v.Condition(v1alpha2.ReadyCondition); ready != nil {
		p.Card.Message = ready.Message // all of it
	}

	p.Card.Automatic = notes(v)

	for _, c := range v.Conditions {
		condition := newCondition(frame, c)
		if ready := p.Card.Message; ready != "" && condition.Message == strings.TrimSpace(ready) {
			condition.Message = "" // it is shown above
		}

		p.Conditions = append(p.Conditions, condition)
	}

	// Problems first, then in the order of the resource.
	slices.SortStableFunc(p.Conditions, func(a, b Condition) int { return strings.Compare(a.Level, b.Level) })

	for _, u := range v.Upgrades {
		p.Upgrades = append(p.Upgrades, Upgrade{
			Version: u.Version, Contract: u.Contract, Command: command(v, "diff", "--version", u.Version),
		})
	}

	if v.Release != nil {
		p.Release = v.Release.Name + ", " + v.Release.Status
	}

	p.addDetails(cmp.Or(v.Details, &view.Details{}))

	return p
}

func (p *Provider) addDetails(d *view.Details) {
	p.Images = slices.Clone(d.Images)
	p.Unknown = slices.Clone(d.Unknown)

	for _, v := range d.Variables {
		p.Variables = append(p.Variables, Variable{Name: v.Name, From: v.From, Missing: v.From == ""})
	}

	for _, c := range d.CRDs {
		p.CRDs = append(p.CRDs, CRD{
			Name:     c.Name,
			Served:   strings.Join(c.Served, ", "),
			Storage:  c.Storage,
			Stored:   strings.Join(c.Stored, ", "),
			Migrated: c.Migrated(),
		})
	}

	for _, e := range d.Events {
		p.Events = append(p.Events, p.newEvent(e))
	}
}

func newCondition(frame Frame, c metav1.Condition) Condition {
	level := levelBad
	if view.IsGood(c) {
		level = levelGood
	}

	return Condition{
		Level:   level,
		Type:    c.Type,
		Status:  string(c.Status),
		Reason:  c.Reason,
		Message: strings.TrimSpace(c.Message),
		Age:     frame.age(c.LastTransitionTime.Time),
	}
}

func newObjects(objects []view.Object) Objects {
	found := Objects{Total: len(objects)}

	for _, o := range objects {
		item := Object{Kind: o.Kind, Name: o.FullName(), Status: string(o.Status), Message: o.Message}

		switch o.Status {
		case status.CurrentStatus:
			item.Level = levelGood
			item.Message = ""
			found.Healthy++
		case status.FailedStatus, status.NotFoundStatus:
			item.Level = levelBad
		default:
			item.Level = levelBusy
		}

		found.Items = append(found.Items, item)
	}

	slices.SortStableFunc(found.Items, func(a, b Object) int { return strings.Compare(a.Level, b.Level) })

	return found
}

func newSource(v view.Provider) Source {
	s := Source{}

	if v.Chart != nil {
		s.Chart = strings.TrimSpace(v.Chart.Name + " " + v.Chart.Version)
		s.Digest = v.Chart.Digest
		s.From = v.Chart.Source
		s.Stored = v.Chart.Reference
	}

	if v.Details != nil {
		s.Trust = slices.Clone(v.Details.Trust)
	}

	return s
}

func (p *Provider) newEvent(e view.Event) Event {
	found := Event{
		Level:   levelGood,
		Age:     p.age(e.Time.Time),
		Time:    e.Time.UTC().Format(time.RFC3339),
		Reason:  e.Reason,
		Message: e.Message,
	}
	if e.Type != "Normal" {
		found.Level = levelBad
	}

	if e.Count > 1 {
		found.Count = strconv.Itoa(int(e.Count))
	}

	return found
}
