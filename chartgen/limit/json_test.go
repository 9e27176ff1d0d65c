package limit_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/limit"
)

func TestJSON(t *testing.T) {
	for name, c := range map[string]struct{ json, problem string }{
		"an object":               {`{"a":{"b":[1,2,"c"]},"d":null}`, ""},
		"indicators in texts":     {`{"a":"` + strings.Repeat(`[{,\"`, 100) + `"}`, ""},
		"a text that ends":        {`["\\",` + strings.Repeat(`{},`, 10) + `{}]`, "has more than 20 values"},
		"empty maps in a list":    {`[` + strings.Repeat(`{},`, 10) + `{}]`, "has more than 20 values"},
		"nothing in a list":       {`[` + strings.Repeat(`null,`, 20) + `null]`, "has more than 20 values"},
		"a map with many keys":    {`{` + strings.Repeat(`"a":0,`, 20) + `"a":0}`, "has more than 20 values"},
		"lists in each other":     {strings.Repeat(`[`, 6) + strings.Repeat(`]`, 6), "has more than 5 levels"},
		"lists beside each other": {`[[[]],[[]],[[]]]`, ""},
		"a long text":             {`"` + strings.Repeat("a", 1<<20) + `"`, "is larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			// Nothing depends on where the reader cuts.
			for _, read := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader} {
				counted := &limit.JSON{MaxBytes: 1 << 20, MaxValues: 20, MaxDepth: 5}
				_, err := io.Copy(counted, read(strings.NewReader(c.json)))

				if c.problem == "" {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(c.problem)))
				}
			}
		})
	}
}
