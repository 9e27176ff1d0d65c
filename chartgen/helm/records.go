package helm

import (
	"fmt"

	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// ErrRecordExists means that a revision cannot be recorded, because one with its number is.
var ErrRecordExists = driver.ErrReleaseExists

// Records writes the records of revisions: Secrets as Helm's own programs write and read them.
type Records struct{ driver *driver.Secrets }

// NewRecords returns what writes records by a client.
func NewRecords(secrets corev1.SecretInterface) Records { return Records{driver.NewSecrets(secrets)} }

// Create writes the record of a new revision. The error is ErrRecordExists if there is one.
func (r Records) Create(rel *Release) error {
	return r.driver.Create(RecordName(rel.Name, rel.Version), rel)
}

// Update writes the record of a revision that has one.
func (r Records) Update(rel *Release) error {
	return r.driver.Update(RecordName(rel.Name, rel.Version), rel)
}

// RecordName returns the name of the Secret with the record of a revision.
func RecordName(release string, revision int) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, release, revision)
}

// RecordLabels are the labels of the Secrets that Helm sets itself.
func RecordLabels() []string { return driver.GetSystemLabels() }
