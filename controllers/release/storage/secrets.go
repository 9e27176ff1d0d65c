package storage

import (
	"context"
	"fmt"
	"maps"

	corev1api "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// secrets writes the Secrets of a release as they were read: a Secret that another process has written
// since is neither overwritten nor deleted. A write whose answer is lost is repeated.
type secrets struct {
	corev1.SecretInterface

	versions map[string]string // resource versions as read or written last, by name
	read     map[string][]byte // records as Helm stores them, by name
}

// growth is by how many bytes a record may grow after it was created: by descriptions, for example.
const growth = 16 << 10

// oversizeError is the size of a record that is too large, in bytes.
type oversizeError int

func (e oversizeError) Error() string {
	return fmt.Sprintf("it takes %d KiB, and a Secret holds %d KiB; reduce the chart, its values or the patches",
		(e+growth)>>10, corev1api.MaxSecretSize>>10)
}

// Create creates a Secret, unless it could not be written later.
func (s *secrets) Create(
	ctx context.Context, secret *corev1api.Secret, options metav1.CreateOptions,
) (*corev1api.Secret, error) {
	for _, data := range secret.Data {
		if len(data) > corev1api.MaxSecretSize-growth {
			return nil, oversizeError(len(data))
		}
	}

	options.FieldManager = v1alpha2.FieldOwner

	return s.write(ctx, secret, func() (*corev1api.Secret, error) {
		return s.SecretInterface.Create(ctx, secret, options)
	})
}

// Update replaces a Secret, but for the unknown fields of its record. The error is a conflict if it has changed.
func (s *secrets) Update(
	ctx context.Context, secret *corev1api.Secret, options metav1.UpdateOptions,
) (*corev1api.Secret, error) {
	if before, read := s.read[secret.Name]; read {
		data, err := keepUnknown(before, secret.Data["release"])
		if err != nil {
			return nil, err
		}

		secret.Data["release"] = data
	}

	secret.ResourceVersion = s.versions[secret.Name]
	options.FieldManager = v1alpha2.FieldOwner

	return s.write(ctx, secret, func() (*corev1api.Secret, error) {
		return s.SecretInterface.Update(ctx, secret, options)
	})
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
) (written *corev1api.Secret, err error) {
	unanswered := false

	err = retry.OnError(retry.DefaultBackoff, isUnanswered, func() (err error) {
		written, err = send()
		if unanswered && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
			written, err = s.find(ctx, secret, err)
		}

		unanswered = unanswered || isUnanswered(err)

		return err
	})
	if err == nil {
		s.versions[secret.Name] = written.ResourceVersion
	}

	return written, err
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
