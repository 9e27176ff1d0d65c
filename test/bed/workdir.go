package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/capstan-project/capstan/test/bed/internal/filelock"
)

// workDir is the folder of one bed, inside a folder shared by all beds of the user. A locked file
// in it shows that the bed is running.
type workDir struct {
	path  string
	alive *filelock.Lock
}

// newWorkDir creates the folder of a bed, and removes the folders of beds that died without Stop.
func newWorkDir(ctx context.Context) (dir *workDir, err error) {
	base := filepath.Join(os.TempDir(), fmt.Sprintf("capstan-bed-%d", os.Getuid()))
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the bed: %w", err)
	}

	err = exclusively(ctx, base, func() error {
		if err := sweep(base); err != nil {
			return err
		}

		path, err := os.MkdirTemp(base, "")
		if err != nil {
			return fmt.Errorf("make a folder for the bed: %w", err)
		}

		alive, err := filelock.Try(aliveFile(path))
		if err != nil {
			return err
		}

		dir = &workDir{path: path, alive: alive}

		return nil
	})

	return dir, err
}

// remove deletes the folder; it is called once. A nil workDir has nothing to remove.
func (d *workDir) remove() error {
	if d == nil {
		return nil
	}

	return exclusively(context.Background(), filepath.Dir(d.path), func() error {
		return errors.Join(d.alive.Release(), os.RemoveAll(d.path))
	})
}

// sweep removes the folders in base whose beds are no longer running.
func sweep(base string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("look for folders of dead beds: %w", err)
	}

	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}

		path := filepath.Join(base, entry.Name())

		lock, err := filelock.Try(aliveFile(path))
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}

		if err == nil {
			err = lock.Release()
		}

		if err := errors.Join(err, os.RemoveAll(path)); err != nil {
			return fmt.Errorf("remove the folder of a dead bed: %w", err)
		}
	}

	return nil
}

func aliveFile(dir string) string { return filepath.Join(dir, "alive.lock") }

// exclusively calls do while no other bed is created or removed.
func exclusively(ctx context.Context, base string, do func() error) error {
	lock, err := filelock.Acquire(ctx, filepath.Join(base, "lock"), nil)
	if err != nil {
		return err
	}

	return errors.Join(do(), lock.Release())
}
