package harness

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestDownload(t *testing.T) {
	g := NewWithT(t)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/kubernetes-sigs/cluster-api") ||
			!strings.Contains(r.URL.Path, "/releases/download/v") {
			http.NotFound(w, r)
			return
		}

		_, _ = w.Write([]byte(r.URL.Path))
	}))
	defer server.Close()

	folder := t.TempDir()
	g.Expect(Download(t.Context(), server.URL, folder)).To(Succeed())

	for _, wanted := range Standard {
		release, err := Load(t.Context(), folder, wanted)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(release.Bundle.Version).To(Equal(wanted.Version))
		g.Expect(string(release.Bundle.Components)).To(And(ContainSubstring(wanted.Version), ContainSubstring("components")))
		g.Expect(string(release.Bundle.Metadata)).To(HaveSuffix("/metadata.yaml"))
	}
}

func TestDownloadFails(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	NewWithT(t).Expect(Download(t.Context(), server.URL, t.TempDir())).To(MatchError(ContainSubstring("404")))
}
