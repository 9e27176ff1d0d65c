package view

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/crds/versions"
	"github.com/capstan-project/capstan/controllers/object"
)

const (
	// maxEvents is how many events of a resource are shown.
	maxEvents = 20
	// maxMessage limits the message of an event in bytes.
	maxMessage = 1024
)

// Details are the facts about a single provider that need further requests.
type Details struct {
	// Images of all containers of the newest revision, sorted.
	Images []string `json:"images,omitempty"`
	// Trust is what the content of the source must have, such as a signature; empty for no requirement.
	Trust     []string   `json:"trust,omitempty"`
	Variables []Variable `json:"variables,omitempty"`
	CRDs      []CRD      `json:"crds,omitempty"`
	// Events of the resource, newest first.
	Events []Event `json:"events,omitempty"`
	// Unknown are the facts that could not be read, with the reasons.
	Unknown []string `json:"unknown,omitempty"`
}

// Variable is a variable of a provider, without its value.
type Variable struct {
	Name string `json:"name"`
	// From is what sets it: spec.variables or a Secret; empty if it is required and missing.
	From string `json:"from,omitempty"`
}

// CRD is a CustomResourceDefinition of a provider.
type CRD struct {
	Name   string   `json:"name"`
	Served []string `json:"served,omitempty"`
	// Storage is the version that objects are written in; Stored are all versions that objects may be stored in.
	Storage string   `json:"storage"`
	Stored  []string `json:"stored,omitempty"`
}

// Migrated reports whether all objects are stored in the storage version.
func (c CRD) Migrated() bool {
	return !slices.ContainsFunc(c.Stored, func(version string) bool { return version != c.Storage })
}

// Event is an event of a resource.
type Event struct {
	Time    metav1.Time `json:"time"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	// Count is how often it was observed, at least 1.
	Count int32 `json:"count"`
}

// details reads the details of a provider. A part that cannot be read is named in Unknown.
func (r *Reader) details(ctx context.Context, p v1alpha2.Provider, recorded []*unstructured.Unstructured) *Details {
	d := &Details{Images: images(recorded), Trust: trust(p)}

	unless := func(err error, what string) {
		if err != nil {
			d.Unknown = append(d.Unknown, what+": "+err.Error())
		}
	}

	var err error

	d.Variables, err = r.variables(ctx, p)
	unless(err, "variables")

	d.CRDs, err = r.crds(ctx, p)
	unless(err, "CRDs")

	d.Events, err = r.events(ctx, p)
	unless(err, "events")

	return d
}

// images returns the images of all containers of the objects, sorted, each once.
func images(objects []*unstructured.Unstructured) []string {
	found := make([]string, 0, len(objects))
	for _, o := range objects {
		found = append(found, bundle.Images(o.Object)...)
	}

	slices.Sort(found)

	return slices.Compact(found)
}

// trust returns what a resource requires of the content of its source.
func trust(p v1alpha2.Provider) []string {
	fetch := p.GetSpec().FetchConfig
	if fetch == nil {
		return nil
	}

	var requirements []string

	if fetch.Verify != nil {
		requirements = append(requirements, "Cosign signature, trusted by Secret "+fetch.Verify.SecretRef.Name)
	}

	if fetch.Digest != "" {
		requirements = append(requirements, "digest "+fetch.Digest)
	}

	return requirements
}

// variables returns the names of a provider's variables, sorted. Those of the Secret take precedence. If the Secret
// cannot be read, the others are returned with the error.
func (r *Reader) variables(ctx context.Context, p v1alpha2.Provider) ([]Variable, error) {
	from := map[string]string{}
	for _, name := range p.GetStatus().MissingVariables {
		from[name] = ""
	}

	for name := range p.GetSpec().Variables {
		from[name] = "spec.variables"
	}

	err := r.secretVariables(ctx, p, from)

	names := slices.Sorted(maps.Keys(from))
	found := make([]Variable, 0, len(names))

	for _, name := range names {
		found = append(found, Variable{Name: name, From: from[name]})
	}

	return found, err
}

// secretVariables adds the names of the variables in a provider's Secret.
func (r *Reader) secretVariables(ctx context.Context, p v1alpha2.Provider, from map[string]string) error {
	key, exists := p.GetSpec().VariablesSecret(p.GetNamespace())
	if !exists {
		return nil
	}

	secret := &corev1.Secret{}

	err := r.Client.Get(ctx, key, secret)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("those in Secret %s, which you may not get", key)
	}

	if err != nil {
		return err
	}

	for name := range secret.Data {
		from[name] = "Secret " + key.String()
	}

	return nil
}

// crds returns the CRDs that have the label of the provider, sorted by name.
func (r *Reader) crds(ctx context.Context, p v1alpha2.Provider) ([]CRD, error) {
	if p.GetSpec().KubeConfig != nil {
		return nil, nil
	}

	list := &apiextensionsv1.CustomResourceDefinitionList{}

	selector := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: v1alpha2.Label(p)}
	if err := r.Client.List(ctx, list, selector); err != nil {
		return nil, err
	}

	found := make([]CRD, 0, len(list.Items))

	for i := range list.Items {
		crd := &list.Items[i]
		found = append(found, CRD{
			Name:    crd.Name,
			Served:  versions.Served(crd),
			Storage: versions.StorageName(crd),
			Stored:  crd.Status.StoredVersions,
		})
	}

	slices.SortFunc(found, func(a, b CRD) int { return strings.Compare(a.Name, b.Name) })

	return found, nil
}

// events returns the newest events of the resource.
func (r *Reader) events(ctx context.Context, p v1alpha2.Provider) ([]Event, error) {
	list := &corev1.EventList{}
	about := client.MatchingFields{"involvedObject.uid": string(p.GetUID())}

	if err := r.Client.List(ctx, list, client.InNamespace(p.GetNamespace()), about); err != nil {
		return nil, err
	}

	found := make([]Event, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, newEvent(&list.Items[i]))
	}

	slices.SortFunc(found, func(a, b Event) int { return b.Time.Compare(a.Time.Time) })

	return found[:min(len(found), maxEvents)], nil
}

// newEvent returns an event of either API of events: some fields are only in the old one, some only in the new.
func newEvent(e *corev1.Event) Event {
	v := Event{
		Time:    e.LastTimestamp,
		Type:    e.Type,
		Reason:  e.Reason,
		Message: object.OneLine(e.Message, maxMessage),
		Count:   max(e.Count, 1),
	}

	if v.Time.IsZero() {
		v.Time = metav1.Time(e.EventTime)
	}

	if e.Series != nil {
		v.Time = metav1.Time(e.Series.LastObservedTime)
		v.Count = max(e.Series.Count, 1)
	}

	return v
}
