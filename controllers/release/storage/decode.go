package storage

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// Limits of a record. A Secret holds at most 1 MiB of compressed JSON, which can be a thousand times as
// large; the largest records of real providers are 5 MB, with their CRDs in templates.
const (
	maxRecord = 16 << 20
	// MaxRecords is the maximum number of revisions of a release, and maxNumber the highest number of one. Users who may
	// write Secrets can make others, which no program would.
	MaxRecords = 200
	maxNumber  = 1 << 30
)

// Decode returns the revision that a Secret holds, which is base64 of gzip of JSON. Helm's own
// decoder panics on a damaged record, or skips it without an error; this one also guarantees the
// fields that an action takes for granted. The chart's templates and files are left out, because
// nothing reads them.
func Decode(secret *corev1.Secret, release string, revision int) (*helm.Release, error) {
	document, err := unpack(secret.Data[recordKey])
	if err != nil {
		return nil, err
	}

	rel := &helm.Release{}
	if err := json.Unmarshal(document, rel); err != nil {
		return nil, errors.New("it is not the JSON of a release")
	}

	if rel.Name != release || rel.Version != revision || rel.Info == nil {
		return nil, errors.New("it is not the record of this revision")
	}

	if rel.Chart == nil {
		rel.Chart = &helm.Chart{}
	}

	if rel.Chart.Metadata == nil {
		rel.Chart.Metadata = &helm.Metadata{}
	}

	if err := checkManifests(rel); err != nil {
		return nil, err
	}

	return withoutFiles(rel), nil
}

// unpack returns the JSON of a record.
func unpack(data []byte) ([]byte, error) {
	compressed, err := base64.StdEncoding.AppendDecode(nil, data)
	if err != nil {
		return nil, errors.New("it is not base64")
	}

	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, errors.New("it is not gzip")
	}

	document, err := io.ReadAll(io.LimitReader(reader, maxRecord+1))
	if err != nil {
		return nil, errors.New("it is truncated or damaged")
	}

	if len(document) > maxRecord {
		return nil, fmt.Errorf("it is larger than %d MiB", maxRecord>>20)
	}

	if err := limit.List(document, limit.MaxValues); err != nil {
		return nil, fmt.Errorf("it %w", err)
	}

	return document, nil
}

// pack returns a record as Helm stores it.
func pack(document []byte) ([]byte, error) {
	var compressed bytes.Buffer

	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}

	if _, err := w.Write(document); err != nil {
		return nil, err
	}

	if err := w.Close(); err != nil {
		return nil, err
	}

	return base64.StdEncoding.AppendEncode(nil, compressed.Bytes()), nil
}

// checkManifests returns an error if parsing the objects of a record would take too much memory.
func checkManifests(rel *helm.Release) error {
	budget := limit.NewFile()

	if err := budget.Documents(rel.Manifest); err != nil {
		return fmt.Errorf("its manifest %w", err)
	}

	for _, hook := range rel.Hooks {
		if err := budget.Documents(hook.Manifest); err != nil {
			return fmt.Errorf("its hook %w", err)
		}
	}

	return nil
}
