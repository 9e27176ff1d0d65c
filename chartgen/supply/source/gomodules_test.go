package source

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestNewGoModule(t *testing.T) {
	for goProxy, want := range map[string]string{
		"":                       "",
		"direct":                 "",
		"off":                    "",
		"https://a/b,direct":     "https://a/b/host.com/m",
		"direct,https://a":       "",
		"proxy.example.com|off":  "https://proxy.example.com/host.com/m",
		"file:///cache,http://a": "http://a/host.com/m",
		"/cache, a/ ,b":          "https://a/host.com/m",
		",off":                   "",
	} {
		g := NewWithT(t)

		m := newGoModule(goProxy, "host.com/m")
		if want == "" {
			g.Expect(m).To(BeNil(), goProxy)
			continue
		}

		g.Expect(m).To(HaveValue(Equal(goModule{url: want})), goProxy)
	}
}
