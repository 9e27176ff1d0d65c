// Package filelock provides file locks between processes for the test bed: two builds must not
// write the same programs, and the folder of a bed may be removed only when its process has ended.
// The operating system releases a lock when its holder dies for any reason.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// ErrHeld is returned by Try when another holder has the lock.
var ErrHeld = errors.New("the lock is held by another process")

// retryEvery is the interval between two attempts to get the lock.
const retryEvery = 50 * time.Millisecond

// Lock is held until Release is called.
type Lock struct {
	file *os.File
}

// Acquire locks the file at path, creating it if necessary, and waits for another holder until ctx
// ends. It calls waiting once if it has to wait; waiting may be nil.
func Acquire(ctx context.Context, path string, waiting func()) (*Lock, error) {
	for {
		lock, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}

		if waiting != nil {
			waiting()
			waiting = nil
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("gave up waiting for the lock %s: %w", path, ctx.Err())
		case <-time.After(retryEvery):
		}
	}
}

// Try locks the file at path, or returns ErrHeld immediately.
func Try(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}

	if err := tryLock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}

	return &Lock{file: file}, nil
}

// Release releases the lock and keeps the file. Removing it would allow two processes to lock two
// different files with the same name.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return fmt.Errorf("release lock: %w", err)
	}

	return nil
}
