package release

import (
	"log"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
)

func TestRedirectStandardLog(t *testing.T) {
	g := NewWithT(t)
	flags := log.Flags()

	t.Cleanup(func() { log.SetFlags(flags); log.SetOutput(os.Stderr) })

	for verbosity, want := range []string{"", "cannot overwrite table with non table for a.b"} {
		var logged strings.Builder

		write := func(_, args string) { logged.WriteString(args) }
		RedirectStandardLog(funcr.New(write, funcr.Options{Verbosity: verbosity}))
		log.Printf("warning: cannot overwrite table with non table for %s (%v)", "a.b", "hunter2")
		g.Expect(logged.String()).To(ContainSubstring(want))
		g.Expect(logged.String() == "").To(Equal(want == ""))
		g.Expect(logged.String()).NotTo(ContainSubstring("hunter2"))
	}
}
