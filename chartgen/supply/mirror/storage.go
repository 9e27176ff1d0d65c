package mirror

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// countingStorage counts the bytes that are read from a storage. When a blob is read again, its count
// starts at zero: the total is what a copy transferred successfully.
type countingStorage struct {
	content.ReadOnlyStorage
	count func(int64)

	mu   sync.Mutex
	read map[digest.Digest]int64
}

// newCountingStorage returns a storage that calls count with every change of the total.
func newCountingStorage(source content.ReadOnlyStorage, count func(int64)) *countingStorage {
	return &countingStorage{ReadOnlyStorage: source, count: count, read: map[digest.Digest]int64{}}
}

// Fetch returns a blob whose bytes are counted.
func (s *countingStorage) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := s.ReadOnlyStorage.Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}

	s.reset(desc.Digest)

	return &countingBody{ReadCloser: body, count: func(n int64) { s.add(desc.Digest, n) }}, nil
}

// add counts bytes of a blob.
func (s *countingStorage) add(blob digest.Digest, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.read[blob] += n
	s.count(n)
}

// reset subtracts what was counted for a blob.
func (s *countingStorage) reset(blob digest.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.count(-s.read[blob])
	s.read[blob] = 0
}

// total returns the number of bytes of all blobs that were read, each counted once.
func (s *countingStorage) total() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()

	total := int64(0)
	for _, n := range s.read {
		total += n
	}

	return total
}

// countingBody calls count with the number of bytes of each Read.
type countingBody struct {
	io.ReadCloser
	count func(int64)
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count(int64(n))

	return n, err
}

// fallbackStorage reads from a fallback what the primary storage does not have.
type fallbackStorage struct {
	primary, fallback content.ReadOnlyStorage
}

// Exists reports whether either storage has the content.
func (s *fallbackStorage) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	if found, err := s.primary.Exists(ctx, desc); err == nil && found {
		return true, nil
	}

	return s.fallback.Exists(ctx, desc)
}

// Fetch reads content from the primary storage, or else from the fallback.
func (s *fallbackStorage) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if found, err := s.primary.Exists(ctx, desc); err == nil && found {
		return s.primary.Fetch(ctx, desc)
	}

	return s.fallback.Fetch(ctx, desc)
}

// manifestOverlay is a storage with one additional manifest.
type manifestOverlay struct {
	content.ReadOnlyStorage
	desc ocispec.Descriptor
	data []byte
}

// Exists reports whether the content is the additional manifest or in the storage.
func (o *manifestOverlay) Exists(ctx context.Context, desc ocispec.Descriptor) (bool, error) {
	if desc.Digest == o.desc.Digest {
		return true, nil
	}

	return o.ReadOnlyStorage.Exists(ctx, desc)
}

// Fetch returns the additional manifest or content of the storage.
func (o *manifestOverlay) Fetch(ctx context.Context, desc ocispec.Descriptor) (io.ReadCloser, error) {
	if desc.Digest == o.desc.Digest {
		return io.NopCloser(bytes.NewReader(o.data)), nil
	}

	return o.ReadOnlyStorage.Fetch(ctx, desc)
}
