package access

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxKept limits how many bytes of Secrets are kept in memory.
const maxKept = 4 << 20

// Kept reads like the reader that it wraps, but reads a Secret again only if a watch of metadata shows that it may have
// changed: a provider reads its variables in each reconcile, so the correction of one object would take 19 requests
// instead of 14. It must wrap a reader with the operator's own permissions, because those of an account may have
// changed. It is safe for concurrent use.
type Kept struct {
	client.Reader

	watched client.Reader

	mu      sync.Mutex
	secrets map[client.ObjectKey]*corev1.Secret
	size    int
}

// NewKept returns a reader that reads from live what watched shows to be new.
func NewKept(live, watched client.Reader) *Kept {
	return &Kept{Reader: live, watched: watched, secrets: map[client.ObjectKey]*corev1.Secret{}}
}

// Get reads an object.
func (k *Kept) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return k.Reader.Get(ctx, key, o, options...)
	}

	if known := k.find(ctx, key); known != nil {
		known.DeepCopyInto(secret)
		return nil
	}

	err := k.Reader.Get(ctx, key, secret, options...)
	k.keep(key, secret, err)

	return err
}

// live is a reader that always asks the API server, and keeps the answer for others.
type live struct{ *Kept }

// Get reads an object.
func (l live) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := l.Reader.Get(ctx, key, o, options...)

	if secret, ok := o.(*corev1.Secret); ok {
		l.keep(key, secret, err)
	}

	return err
}

// find returns the kept Secret if it is at least as new as the one that the watch shows; nil otherwise.
func (k *Kept) find(ctx context.Context, key client.ObjectKey) *corev1.Secret {
	k.mu.Lock()
	known := k.secrets[key]
	k.mu.Unlock()

	if known == nil {
		return nil
	}

	shown := &metav1.PartialObjectMetadata{}
	shown.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	if k.watched.Get(ctx, key, shown) != nil || shown.UID != known.UID {
		return nil
	}

	order, err := resourceversion.CompareResourceVersion(known.ResourceVersion, shown.ResourceVersion)
	if err != nil || order < 0 {
		return nil
	}

	return known
}

// keep keeps a Secret that was read, unless that failed.
func (k *Kept) keep(key client.ObjectKey, secret *corev1.Secret, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	k.size -= sizeOf(k.secrets[key])
	delete(k.secrets, key)

	size := sizeOf(secret)
	if err != nil || size > maxKept {
		return
	}

	if k.size+size > maxKept {
		k.size = 0
		clear(k.secrets)
	}

	k.secrets[key] = secret.DeepCopy()
	k.size += size
}

func sizeOf(secret *corev1.Secret) int {
	if secret == nil {
		return 0
	}

	size := 0
	for key, value := range secret.Data {
		size += len(key) + len(value)
	}

	return size
}
