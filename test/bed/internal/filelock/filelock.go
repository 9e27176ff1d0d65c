// Package filelock locks a file between processes, for the test bed: two builds must not write the
// same programs, and a bed's folder may be swept only once the process that owns it is gone. The
// operating system drops the lock when its holder dies, however it dies.
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

// retryEvery is how long Lock waits between two attempts.
const retryEvery = 50 * time.Millisecond

// Lock is a lock that is held until Release.
type Lock struct {
	file *os.File
}

// Acquire takes the lock on the file at path, which it creates when it is absent, and waits for
// another holder until ctx ends. waiting is called once if there is someone to wait for; it may be
// nil.
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

// Try takes the lock on the file at path, or returns ErrHeld at once.
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

// Release gives the lock back. The file stays: removing it would let two processes lock two files
// of one name.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return fmt.Errorf("release lock: %w", err)
	}

	return nil
}
