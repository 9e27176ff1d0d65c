package storage

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// PatchedCRDsAnnotation of a stored chart lists the CRDs of the revision that were applied with patches.
const PatchedCRDsAnnotation = v1alpha2.Prefix + "/patched-crds"

// Annotations of a stored chart that are the record's own: a random text, so that the digest of the revision does not
// reveal values that can be guessed, and the parts of the state.Owner.
const (
	saltAnnotation     = v1alpha2.Prefix + "/salt"
	resourceAnnotation = v1alpha2.Prefix + "/resource-uid"
	homeAnnotation     = v1alpha2.Prefix + "/resource-cluster-uid"
	clusterAnnotation  = v1alpha2.Prefix + "/cluster-uid"
)

// digestVersion is the prefix of digests. It changes with what they cover: no record is then believed, and all releases
// are applied once more.
const digestVersion = "v1:"

// readAnnotations are the annotations of a chart that are read from a record.
var readAnnotations = []string{
	PatchedCRDsAnnotation, chartgen.AnnotationContract, chartgen.AnnotationContentID,
	saltAnnotation, resourceAnnotation, homeAnnotation, clusterAnnotation,
}

// canonical is what the digest of a revision covers, in fields of this program: Helm's versions write the same
// revision in different bytes.
type canonical struct {
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	Revision    int               `json:"revision"`
	Manifest    string            `json:"manifest"`
	Hooks       []canonicalHook   `json:"hooks,omitempty"`
	Chart       canonicalChart    `json:"chart"`
	Config      map[string]any    `json:"config,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// canonicalHook is a hook without the time of its last run, which `helm test` changes.
type canonicalHook struct {
	Name           string                  `json:"name"`
	Kind           string                  `json:"kind"`
	Path           string                  `json:"path"`
	Manifest       string                  `json:"manifest"`
	Events         []helm.HookEvent        `json:"events,omitempty"`
	Weight         int                     `json:"weight,omitempty"`
	DeletePolicies []helm.HookDeletePolicy `json:"deletePolicies,omitempty"`
}

type canonicalChart struct {
	Name       string         `json:"name"`
	Version    string         `json:"version"`
	AppVersion string         `json:"appVersion"`
	Values     map[string]any `json:"values,omitempty"`
}

// Digest identifies a revision: everything of its record that an action depends on and that does not change once it was
// created, the cluster that it was created in among it. Users who may read the digest cannot find out values by it,
// because it is salted.
func Digest(rel *helm.Release) (string, error) {
	covered := canonical{
		Namespace: rel.Namespace,
		Name:      rel.Name,
		Revision:  rel.Version,
		Manifest:  rel.Manifest,
		Config:    rel.Config,
	}

	for _, h := range rel.Hooks {
		covered.Hooks = append(covered.Hooks, canonicalHook{
			h.Name, h.Kind, h.Path, h.Manifest, h.Events, h.Weight, h.DeletePolicies,
		})
	}

	if rel.Chart != nil && rel.Chart.Metadata != nil {
		metadata := rel.Chart.Metadata
		covered.Chart = canonicalChart{metadata.Name, metadata.Version, metadata.AppVersion, rel.Chart.Values}
		covered.Annotations = selectKeys(metadata.Annotations, readAnnotations)
	}

	document, err := canonicalJSON(covered)
	if err != nil {
		return "", fmt.Errorf("digest of revision %d of release %s/%s: %w", rel.Version, rel.Namespace, rel.Name, err)
	}

	sum := sha256.Sum256(document)

	return digestVersion + hex.EncodeToString(sum[:]), nil
}

// OwnerOf returns the owner that a record names; zero if it names none.
func OwnerOf(rel *helm.Release) state.Owner {
	if rel.Chart == nil || rel.Chart.Metadata == nil {
		return state.Owner{}
	}

	annotations := rel.Chart.Metadata.Annotations

	return state.Owner{
		Resource: types.UID(annotations[resourceAnnotation]),
		Home:     types.UID(annotations[homeAnnotation]),
		Cluster:  types.UID(annotations[clusterAnnotation]),
	}
}

// NewSalt returns a salt for the digests of a release, which no user can guess.
func NewSalt() string { return rand.Text() }

// SaltOf returns the salt of a record; empty if it has none.
func SaltOf(rel *helm.Release) string {
	if rel == nil || rel.Chart == nil || rel.Chart.Metadata == nil {
		return ""
	}

	return rel.Chart.Metadata.Annotations[saltAnnotation]
}

// sign gives a record a copy of its chart that names the salt and the owner.
func sign(rel *helm.Release, salt string, owner state.Owner) {
	chart, metadata := *rel.Chart, *rel.Chart.Metadata

	annotations := maps.Clone(metadata.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}

	for name, value := range map[string]string{
		saltAnnotation: salt, resourceAnnotation: string(owner.Resource),
		homeAnnotation: string(owner.Home), clusterAnnotation: string(owner.Cluster),
	} {
		if annotations[name] = value; value == "" {
			delete(annotations, name)
		}
	}

	metadata.Annotations = annotations
	chart.Metadata = &metadata
	rel.Chart = &chart
}

// canonicalJSON returns the JSON of a value as it is after it was stored and read again, when all numbers are floats.
func canonicalJSON(value any) ([]byte, error) {
	document, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}

	var stored any
	if err := json.Unmarshal(document, &stored); err != nil {
		return nil, err
	}

	return json.Marshal(stored)
}

// selectKeys returns the entries of a map with the given keys, without empty ones.
func selectKeys(all map[string]string, keys []string) map[string]string {
	selected := map[string]string{}

	for _, key := range keys {
		if value := all[key]; value != "" {
			selected[key] = value
		}
	}

	return selected
}
