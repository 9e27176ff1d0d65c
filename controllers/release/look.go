package release

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Look is what Helm's storage has of the release of a resource, as far as the status of the resource confirms it.
type Look struct {
	// History has the revisions, also those of a release of something else.
	History state.History
	// Newest is the newest revision; zero if there is none. It is confirmed if it is known to be the resource's.
	Newest state.Revision
	// Record is its content; nil if there is none, or if it cannot be read.
	Record *Record
	// Owner is the resource that the release was created for, as far as its records name it.
	Owner state.Owner
}

// Look reads what Helm's storage has of a release, for the resource that it is the release of and that is recorded as
// self.
func (e *Engine) Look(
	ctx context.Context, release types.NamespacedName, provider v1alpha2.Provider, self state.Owner,
) (Look, error) {
	history, err := e.Observe(ctx, release)
	if err != nil {
		return Look{}, err
	}

	status := provider.GetStatus()
	look := Look{History: history.Confirm(status)}

	var exists bool
	if look.Newest, exists = look.History.Newest(); !exists {
		return look, nil
	}

	look.Record, err = e.recall(ctx, release, look.Newest)

	corrupt := errors.As(err, new(*storage.CorruptError))
	if err != nil && !corrupt {
		return look, err
	}

	if look.Owner, err = OwnerOf(ctx, e.Read, look.History, look.Record); err != nil {
		return look, err
	}

	// The next revision replaces one that cannot be read.
	if corrupt {
		look.History.Revisions[0].Unreadable = true
	} else {
		look.History.ConfirmNewest(status, self, look.Record.Digest, look.Record.Owner)
	}

	look.Newest = look.History.Revisions[0]

	return look, nil
}
