package audit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/controllers/paging"
)

// readSecrets reads the Secrets of the type that the contracts define, and those that are expected by name
// but may have another type. Their content is not kept.
func (r *reader) readSecrets(ctx context.Context) {
	err := r.listSecrets(ctx)
	if err == nil {
		err = r.getSecrets(ctx)
	}

	if err != nil {
		r.unread(ctx, SecretsName, err)
	}
}

func (r *reader) listSecrets(ctx context.Context) error {
	list := r.core.CoreV1().Secrets(metav1.NamespaceAll).List
	options := metav1.ListOptions{
		Limit:         pageSize,
		FieldSelector: fields.OneTermEqualSelector("type", string(clusterv1.ClusterSecretType)).String(),
	}

	for page, err := range paging.Pages(ctx, options, list) {
		if err != nil {
			return err
		}

		for i := range page.Items {
			r.addSecret(&page.Items[i])
		}

		if len(r.snapshot.Secrets) > r.limits.Objects {
			return fmt.Errorf("there are more than %d Secrets", r.limits.Objects)
		}
	}

	return nil
}

// getSecrets reads expected Secrets that are not listed because they do not exist or have another type.
func (r *reader) getSecrets(ctx context.Context) error {
	known := map[types.NamespacedName]bool{}
	for _, s := range r.snapshot.Secrets {
		known[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = true
	}

	for _, name := range expectedSecrets(r.snapshot) {
		if known[name] {
			continue
		}

		secret, err := r.core.CoreV1().Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}

		if err != nil {
			return err
		}

		r.addSecret(secret)
	}

	return nil
}

func (r *reader) addSecret(s *corev1.Secret) {
	r.snapshot.Secrets = append(r.snapshot.Secrets, NewSecret(s))
}
