package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestAcquire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")

	first, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("a second holder got %v, want ErrHeld", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Acquire(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Fatalf("a second holder that gave up got %v, want context.Canceled", err)
	}

	second, err := Acquire(t.Context(), path, func() {
		if err := first.Release(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("a third holder got %v, want ErrHeld", err)
	}

	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
}
