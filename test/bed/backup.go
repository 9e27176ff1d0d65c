package bed

import (
	"context"
	"fmt"
	"os"
)

// Backup restarts the control plane, and returns a function that restarts it with the data that etcd has now, as after
// a restore from a backup. Programs of the caller see the API server go away for some seconds both times.
func (b *Bed) Backup(ctx context.Context) (restore func(context.Context) error, err error) {
	data, backup := b.file(etcdFolder), b.file(etcdFolder+"-backup")

	err = b.restart(ctx, func() error { return os.CopyFS(backup, os.DirFS(data)) })
	if err != nil {
		return nil, fmt.Errorf("back up etcd: %w", err)
	}

	return func(ctx context.Context) error {
		err := b.restart(ctx, func() error {
			if err := os.RemoveAll(data); err != nil {
				return err
			}

			return os.Rename(backup, data)
		})
		if err != nil {
			return fmt.Errorf("restore etcd: %w", err)
		}

		return nil
	}, nil
}

// restart stops all components, and starts them again after something was done meanwhile.
func (b *Bed) restart(ctx context.Context, meanwhile func() error) error {
	b.mu.Lock()

	end(b.processes...)

	b.processes = nil
	b.mu.Unlock()

	if err := meanwhile(); err != nil {
		return err
	}

	if err := b.startAPIServer(ctx); err != nil {
		return err
	}

	return b.startControllers(ctx)
}
