package storage

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	helmstorage "helm.sh/helm/v3/pkg/storage"
	corev1 "k8s.io/api/core/v1"
)

// SecretName returns the name of the Secret in which Helm stores a revision.
func SecretName(release string, revision int) string {
	return fmt.Sprintf("%s.%s.v%d", helmstorage.HelmStorageType, release, revision)
}

// Decode returns the revision that a Secret holds, which is base64 of gzip of JSON. Helm's own
// decoder panics on a damaged record, or skips it without an error; this one also guarantees the
// fields that Helm's actions take for granted.
func Decode(secret *corev1.Secret, release string, revision int) (*helmrelease.Release, error) {
	compressed, err := base64.StdEncoding.AppendDecode(nil, secret.Data["release"])
	if err != nil {
		return nil, errors.New("it is not base64")
	}

	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, errors.New("it is not gzip")
	}

	document, err := io.ReadAll(reader)
	if err != nil {
		return nil, errors.New("it is truncated or damaged")
	}

	rel := &helmrelease.Release{}
	if err := json.Unmarshal(document, rel); err != nil {
		return nil, errors.New("it is not the JSON of a release")
	}

	if rel.Name != release || rel.Version != revision || rel.Info == nil {
		return nil, errors.New("it is not the record of this revision")
	}

	if rel.Chart == nil {
		rel.Chart = &chart.Chart{Metadata: &chart.Metadata{}}
	}

	return rel, nil
}
