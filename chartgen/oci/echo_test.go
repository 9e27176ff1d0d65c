package oci

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
)

// TestCredentialsAreNotRepeated: nothing that a registry, or its token service, sends makes credentials a part of an
// error or of a list.
func TestCredentialsAreNotRepeated(t *testing.T) {
	const (
		password = "hunter2-of/the-tenant"
		token    = "token-of-the-service"
	)

	for name, repeat := range map[string]func(w http.ResponseWriter, text string){
		"a message": func(w http.ResponseWriter, text string) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"errors":[{"code":"UNKNOWN","message":%q,"detail":%q}]}`, "you sent "+text, text)
		},
		"a tag": func(w http.ResponseWriter, text string) { fmt.Fprintf(w, `{"tags":[%q]}`, text) },
		"a media type": func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "application/"+text)
			fmt.Fprint(w, "{}")
		},
		"a redirect": func(w http.ResponseWriter, text string) {
			w.Header().Set("Location", "http://127.0.0.1:1/"+url.PathEscape(text))
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a link": func(w http.ResponseWriter, text string) {
			w.Header().Set("Link", fmt.Sprintf(`<http://elsewhere.example.com/%s>; rel="next"`, url.PathEscape(text)))
			fmt.Fprint(w, `{"tags":[]}`)
		},
		"no HTTP": func(w http.ResponseWriter, text string) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			defer connection.Close()

			fmt.Fprintf(connection, "HTTP/1.1 %s\r\n\r\n", text)
		},
	} {
		for _, secret := range []string{password, token, base64.StdEncoding.EncodeToString([]byte("me:" + password))} {
			t.Run(name+" "+secret[:4], func(t *testing.T) {
				g := NewWithT(t)

				var server *httptest.Server

				server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.URL.Path == "/token":
						fmt.Fprintf(w, `{"token":%q}`, token)
					case r.Header.Get("Authorization") != "Bearer "+token:
						w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, server.URL))
						w.WriteHeader(http.StatusUnauthorized)
					default:
						repeat(w, secret)
					}
				}))
				t.Cleanup(server.Close)

				host := strings.TrimPrefix(server.URL, "http://")
				c := client(t, transport.Options{Credentials: bed.Login(host, "me", password)})
				ref := parse(t, server.URL+"/a:v1")

				for _, ask := range []func(context.Context) (any, error){
					func(ctx context.Context) (any, error) { return c.Tags(ctx, ref) },
					func(ctx context.Context) (any, error) { return c.Artifact(ctx, ref) },
					func(ctx context.Context) (any, error) { return c.Referrers(ctx, ref, ocispec.DescriptorEmptyJSON) },
				} {
					found, err := ask(t.Context())
					told := fmt.Sprint(found, err)
					g.Expect(told).NotTo(ContainSubstring(secret))
					g.Expect(told).NotTo(ContainSubstring(url.PathEscape(secret)))
				}
			})
		}
	}
}
