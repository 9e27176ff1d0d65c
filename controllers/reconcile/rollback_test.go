package reconcile

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

func TestRefusesRollback(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                        {nil, false},
		"a contract":                     {&preflight.Error{}, true},
		"CRDs that are too new":          {&crds.IncompatibleError{Report: &safety.Report{}}, true},
		"a CRD of another provider":      {&crds.OwnershipError{}, true},
		"a record that cannot be read":   {&storage.CorruptError{}, true},
		"CRDs that cannot be compared":   {&uncheckedError{}, true},
		"a store that does not answer":   {&plan.StoreError{Err: errors.New("timeout")}, false},
		"a release that another changes": {storage.ErrChanged, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.err
			if err != nil {
				err = fmt.Errorf("context: %w", err)
			}

			NewWithT(t).Expect(refusesRollback(err)).To(Equal(test.want))
		})
	}
}
