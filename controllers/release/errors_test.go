package release

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

func TestIsOvertaken(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"another action is running": {locked(state.Observed{Message: "helm is running"}), true},
		"the release has changed":   {fmt.Errorf("release a/b: %w", storage.ErrChanged), true},
		"a refusal":                 {errors.New("refused"), false},
		"nothing":                   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(IsOvertaken(test.err)).To(Equal(test.want))
		})
	}
}
