package transport_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	. "github.com/onsi/gomega"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// TestEcho: secrets are found as servers write them, wherever a text is cut.
func TestEcho(t *testing.T) {
	const secret = `s3cr3t/of "me"+<you>`

	echo := transport.NewEcho("", secret)
	quoted, _ := json.Marshal(secret)
	escapes := ""

	for _, c := range secret {
		escapes += fmt.Sprintf(`\u%04x`, c)
	}

	for name, text := range map[string]string{
		"plain":                   secret,
		"quoted by JSON":          string(quoted),
		"quoted by Go":            strconv.Quote(secret),
		"each character escaped":  escapes,
		"the slash escaped":       strings.ReplaceAll(string(quoted), "/", `\/`),
		"in HTML":                 html.EscapeString(secret),
		"in a query":              url.QueryEscape(secret),
		"in a path":               url.PathEscape(secret),
		"in a path, in lower":     strings.ReplaceAll(url.PathEscape(secret), "%2F", "%2f"),
		"in base64":               base64.StdEncoding.EncodeToString([]byte(secret)),
		"in base64 of a header":   base64.StdEncoding.EncodeToString([]byte("Bearer " + secret + "\r\n")),
		"in base64 of a login":    base64.StdEncoding.EncodeToString([]byte("me:" + secret)),
		"in base64 of a token":    base64.RawURLEncoding.EncodeToString([]byte("12" + secret + "x")),
		"in hexadecimal, in text": fmt.Sprintf("%x", secret),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			text := strings.Repeat("x", 5000) + text + strings.Repeat("y", 5000)
			g.Expect(echo.In([]byte(text))).To(BeTrue())

			body := io.NopCloser(iotest.OneByteReader(strings.NewReader(text)))
			_, err := io.ReadAll(echo.Body(body))
			g.Expect(err).To(MatchError(transport.ErrEcho))
		})
	}

	g := NewWithT(t)
	harmless := strings.Repeat(`{"a":"s3cr3t \\ \u0061"}`, 1000)
	g.Expect(io.ReadAll(echo.Body(io.NopCloser(strings.NewReader(harmless))))).To(BeEquivalentTo(harmless))
	g.Expect(transport.NewEcho("", "registry", "json").In([]byte("registry/2.0 application/json"))).To(BeFalse(),
		"a short secret is not told from what servers write")
}

// TestLoginIsNotRepeated: neither a file nor an error of a web server has the login in it.
func TestLoginIsNotRepeated(t *testing.T) {
	for name, login := range map[string]auth.Credential{
		"a token":    {AccessToken: "hunter2-of-the-tenant"},
		"a password": {Username: "me", Password: "hunter2-of-the-tenant"},
	} {
		for answer, repeat := range map[string]http.HandlerFunc{
			"a file": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "name: hunter2-of-the-tenant") },
			"a redirect": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://hunter2-of-the-tenant.example.com/")
				w.WriteHeader(http.StatusFound)
			},
		} {
			t.Run(answer+" with "+name, func(t *testing.T) {
				g := NewWithT(t)
				server := httptest.NewServer(repeat)
				t.Cleanup(server.Close)

				client, err := transport.NewClient(transport.Options{}, login, server.URL)
				g.Expect(err).NotTo(HaveOccurred())

				_, err = client.Get(t.Context(), transport.Request{URL: server.URL, Limit: 1 << 10})
				g.Expect(err).To(MatchError(ContainSubstring("the server repeats the credentials that it is sent")))
				g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
			})
		}
	}
}

// TestProxyIsNotRepeated: a proxy refuses with a text that has its password.
func TestProxyIsNotRepeated(t *testing.T) {
	g := NewWithT(t)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer connection.Close()

		fmt.Fprint(connection, "HTTP/1.1 407 you sent hunter2-of-the-tenant\r\n\r\n")
	}))
	t.Cleanup(proxy.Close)

	through := strings.Replace(proxy.URL, "//", "//me:hunter2-of-the-tenant@", 1)
	client, err := transport.NewClient(transport.Options{Proxy: through}, auth.EmptyCredential)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = client.Get(t.Context(), transport.Request{URL: "https://a.example.com", Limit: 1 << 10})
	g.Expect(err).To(HaveOccurred())
	g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
}
