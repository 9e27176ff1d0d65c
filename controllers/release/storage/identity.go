package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/helm"
)

// PatchedCRDsAnnotation of a stored chart lists the CRDs of the revision that were applied with patches.
const PatchedCRDsAnnotation = v1alpha2.Prefix + "/patched-crds"

// digestVersion is the prefix of digests. It changes with what they cover: resources then confirm their revisions by
// the objects in the cluster.
const digestVersion = "v1:"

// fixedLabels are the labels of a revision that do not change after it was created.
var fixedLabels = []string{
	RevisionLabel, v1alpha2.HolderLabel, v1alpha2.DigestLabel, v1alpha2.VersionLabel, ChartDigestLabel, PausedLabel,
	RollbackLabel, AdoptedVersionLabel, InputsLabel, EnvironmentLabel, resourceLabel, homeLabel, clusterLabel,
	SaltLabel,
}

// readAnnotations are the annotations of a chart that are read from a record.
var readAnnotations = []string{PatchedCRDsAnnotation, chartgen.AnnotationContract, chartgen.AnnotationContentID}

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
	Labels      map[string]string `json:"labels,omitempty"`
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

// Digest identifies a revision: everything of it that an action depends on and that does not change once it was
// created, the cluster that it was created in among it. The labels are those of its Secret. Users who may read the
// digest cannot find out values by it, because it is salted.
func Digest(rel *helm.Release, labels map[string]string) (string, error) {
	covered := canonical{
		Namespace: rel.Namespace,
		Name:      rel.Name,
		Revision:  rel.Version,
		Manifest:  rel.Manifest,
		Config:    rel.Config,
		Labels:    selectKeys(labels, fixedLabels),
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
