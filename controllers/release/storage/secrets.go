package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1api "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
)

// secrets writes the Secrets of a release as they were read: a Secret that another process has written
// since is neither overwritten nor deleted. A write whose answer is lost is repeated.
type secrets struct {
	corev1.SecretInterface

	versions map[string]string // resource versions as read or written last, by name
	read     map[string][]byte // records as Helm stores them, by name
	written  *corev1api.Secret // as it was written last; nil for none
}

// checkSize returns an error if a record, as Helm stores it, is too large.
func checkSize(record []byte) error {
	if len(record) > helm.MaxRecord {
		return fmt.Errorf("it takes %d KiB, and may take %d KiB, 90 %% of a Secret; "+
			"reduce the chart, its values or the patches", len(record)>>10, helm.MaxRecord>>10)
	}

	return nil
}

// create creates the Secret of a revision, unless it is too large.
func (s *secrets) create(ctx context.Context, rel *helm.Release) error {
	secret, err := newSecret(rel, createdLabel)
	if err != nil {
		return err
	}

	if err := checkSize(secret.Data[recordKey]); err != nil {
		return err
	}

	return s.write(ctx, secret, func() (*corev1api.Secret, error) {
		return s.Create(ctx, secret, metav1.CreateOptions{FieldManager: v1alpha2.FieldOwner})
	})
}

// update replaces the Secret of a revision, but for the unknown fields of its record. The error is a conflict if it has
// changed.
func (s *secrets) update(ctx context.Context, rel *helm.Release) error {
	secret, err := newSecret(rel, modifiedLabel)
	if err != nil {
		return err
	}

	if before, read := s.read[secret.Name]; read {
		if secret.Data[recordKey], err = keepUnknown(before, secret.Data[recordKey]); err != nil {
			return err
		}
	}

	secret.ResourceVersion = s.versions[secret.Name]

	return s.write(ctx, secret, func() (*corev1api.Secret, error) {
		return s.Update(ctx, secret, metav1.UpdateOptions{FieldManager: v1alpha2.FieldOwner})
	})
}

// get reads a Secret, which must be as it was listed.
func (s *secrets) get(ctx context.Context, name string) (*corev1api.Secret, error) {
	secret, err := s.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}

	if secret.ResourceVersion != s.versions[name] {
		return nil, ErrChanged
	}

	s.read[name] = secret.Data[recordKey]

	return secret, nil
}

// isRecord reports whether the Secret with the name of a revision is a record of the release.
func (s *secrets) isRecord(ctx context.Context, release string, revision int) (bool, error) {
	found, err := s.Get(ctx, helm.RecordName(release, revision), metav1.GetOptions{})
	if err != nil {
		return false, err
	}

	return IsRecord(found.Labels) && ReleaseName(found.Labels) == release, nil
}

// newSecret returns the Secret of a revision as Helm's own programs write it. A label says when.
func newSecret(rel *helm.Release, written string) (*corev1api.Secret, error) {
	document, err := json.Marshal(rel)
	if err != nil {
		return nil, err
	}

	data, err := pack(document)
	if err != nil {
		return nil, err
	}

	labels := map[string]string{
		ownerLabel:  ownerHelm,
		nameLabel:   rel.Name,
		statusLabel: rel.Info.Status.String(),
		numberLabel: strconv.Itoa(rel.Version),
		written:     strconv.FormatInt(time.Now().Unix(), 10),
	}
	maps.Copy(labels, customLabels(rel.Labels))

	return &corev1api.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: helm.RecordName(rel.Name, rel.Version), Labels: labels},
		Type:       helm.RecordType,
		Data:       map[string][]byte{recordKey: data},
	}, nil
}

// Delete deletes a Secret. The error is a conflict if it has changed.
func (s *secrets) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	if version, ok := s.versions[name]; ok {
		options.Preconditions = &metav1.Preconditions{ResourceVersion: &version}
	}

	err := s.SecretInterface.Delete(ctx, name, options)
	if err == nil {
		delete(s.versions, name)
	}

	return err
}

// write sends a request that writes a Secret, again if its answer may be lost.
func (s *secrets) write(
	ctx context.Context, secret *corev1api.Secret, send func() (*corev1api.Secret, error),
) error {
	var written *corev1api.Secret

	unanswered := false

	err := retry.OnError(retry.DefaultBackoff, isUnanswered, func() (err error) {
		written, err = send()
		if unanswered && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
			written, err = s.find(ctx, secret, err)
		}

		unanswered = unanswered || isUnanswered(err)

		return err
	})
	if err == nil {
		s.versions[secret.Name] = written.ResourceVersion
		secret.ResourceVersion = written.ResourceVersion
		s.written = secret
	}

	return err
}

// isUnanswered reports whether a request that failed with an error may have taken effect.
func isUnanswered(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) ||
		utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// find returns the stored Secret if an earlier request has written it. Otherwise it returns the given error.
func (s *secrets) find(
	ctx context.Context, secret *corev1api.Secret, otherwise error,
) (*corev1api.Secret, error) {
	stored, err := s.Get(ctx, secret.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}

	if equality.Semantic.DeepEqual(stored.Data, secret.Data) && maps.Equal(stored.Labels, secret.Labels) {
		return stored, nil
	}

	return nil, otherwise
}
