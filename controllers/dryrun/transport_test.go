package dryrun

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// server is an API server with one Secret, which notes what it is asked to do. status answers writes.
func server(t *testing.T, status int) (*httptest.Server, *[]string) {
	t.Helper()

	var asked []string

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI())

		switch {
		case r.Method != http.MethodGet && status != http.StatusOK:
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","message":"no"}`)
		case strings.HasSuffix(r.URL.Path, "/secrets"):
			_, _ = io.WriteString(w, `{"kind":"SecretList","apiVersion":"v1",
				"items":[{"metadata":{"namespace":"a","name":"b"}}]}`)
		default:
			_, _ = io.WriteString(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"a","name":"b"}}`)
		}
	}))
	t.Cleanup(s.Close)

	return s, &asked
}

// send sends a request, and returns the status and the body of the answer.
func send(g *WithT, c *http.Client, method, url, body string, header ...string) (int, string) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	g.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/merge-patch+json")

	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}

	response, err := c.Do(request)
	g.Expect(err).NotTo(HaveOccurred())

	defer response.Body.Close()

	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())

	return response.StatusCode, string(content)
}

// TestWritesAreNotSent checks that each write is sent as a dry run, and that what is read afterwards shows it.
func TestWritesAreNotSent(t *testing.T) {
	g := NewWithT(t)
	s, asked := server(t, http.StatusForbidden)
	dry := New()
	c := &http.Client{Transport: dry.RoundTripper(http.DefaultTransport)}
	secrets := s.URL + "/api/v1/namespaces/a/secrets"

	status, _ := send(g, c, http.MethodPatch, secrets+"/b", `{"metadata":{"labels":{"x":"y"}}}`)
	g.Expect(status).To(Equal(http.StatusOK))
	status, _ = send(g, c, http.MethodPost, secrets, `{"kind":"Secret","metadata":{"namespace":"a","name":"c"}}`)
	g.Expect(status).To(Equal(http.StatusCreated))
	status, _ = send(g, c, http.MethodDelete, secrets+"/b", "")
	g.Expect(status).To(Equal(http.StatusOK))

	for _, request := range *asked {
		if !strings.HasPrefix(request, http.MethodGet) {
			g.Expect(request).To(HaveSuffix("?dryRun=All"))
		}
	}

	status, _ = send(g, c, http.MethodGet, secrets+"/b", "")
	g.Expect(status).To(Equal(http.StatusNotFound))

	_, list := send(g, c, http.MethodGet, secrets, "")
	g.Expect(list).To(And(ContainSubstring(`"name":"c"`), Not(ContainSubstring(`"name":"b"`))))

	g.Expect(dry.Writes()).To(HaveLen(3))
	g.Expect(dry.Denied()).To(ContainElement("patch secrets b in namespace a"))

	_, err := c.Post(s.URL+"/somewhere", "", nil) //nolint:bodyclose // there is none
	g.Expect(err).To(MatchError(ContainSubstring("may change something")))
}

// TestRefusedWrites checks that what the API server refuses is refused, and what an account may not do as well.
func TestRefusedWrites(t *testing.T) {
	for _, test := range []struct {
		status int
		header []string
	}{
		{http.StatusUnprocessableEntity, nil},
		{http.StatusForbidden, []string{"Impersonate-User", "account"}},
	} {
		g := NewWithT(t)
		s, _ := server(t, test.status)
		dry := New()
		c := &http.Client{Transport: dry.RoundTripper(http.DefaultTransport)}

		status, _ := send(g, c, http.MethodPatch, s.URL+"/api/v1/namespaces/a/secrets/b", "{}", test.header...)
		g.Expect(status).To(Equal(test.status))
		g.Expect(dry.Writes()).To(BeEmpty())
		g.Expect(dry.Denied()).To(BeEmpty())
	}
}
