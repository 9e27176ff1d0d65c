package clusters_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
)

// echoes are how a server repeats a text.
var echoes = map[string]func(w http.ResponseWriter, text string){
	"a message": func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q}`, "you sent "+text)
	},
	"a refusal": func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","reason":"Forbidden","message":%q}`, "you sent "+text)
	},
	"an object": func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, text)
	},
	"no JSON": func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "you sent "+text)
	},
	"a page": func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprintf(w, "<p>you sent %s</p>", text)
	},
	"a warning": func(w http.ResponseWriter, text string) {
		w.Header().Set("Warning", fmt.Sprintf("299 - %q", text))
		w.WriteHeader(http.StatusServiceUnavailable)
	},
	"a format": func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/"+text+"; x")
		w.WriteHeader(http.StatusInternalServerError)
	},
	"a redirect": func(w http.ResponseWriter, text string) {
		w.Header().Set("Location", "http://127.0.0.1:1/"+url.PathEscape(text))
		w.WriteHeader(http.StatusTemporaryRedirect)
	},
	"a status":      raw("HTTP/1.1 500 %s\r\n\r\n"),
	"no status":     raw("HTTP/1.1 %s\r\n\r\n"),
	"no HTTP":       raw("%s\r\n\r\n"),
	"no header":     raw("HTTP/1.1 200 OK\r\n%s\r\n\r\n"),
	"a wrong chunk": raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n"),
}

// raw returns what answers by a text that is no answer of HTTP.
func raw(format string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, text string) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer connection.Close()

		fmt.Fprintf(connection, format, text)
	}
}

// TestCredentialsAreNotRepeated: nothing that a server sends makes the credentials of a kubeconfig, or the path of its
// server, a part of an error or of a log.
func TestCredentialsAreNotRepeated(t *testing.T) {
	const (
		token    = "hunter2-of-the-tenant"
		password = "letmein-or/not"
		path     = "a-key-of-the-tenant"
	)

	basic := base64.StdEncoding.EncodeToString([]byte("me:" + password))
	encodings := map[string]func(string) string{
		"as it is":  func(text string) string { return text },
		"in base64": func(text string) string { return base64.StdEncoding.EncodeToString([]byte("Bearer " + text)) },
		"in a URL":  url.QueryEscape,
	}

	log := &bytes.Buffer{}

	klog.LogToStderr(false)
	klog.SetOutput(log)
	t.Cleanup(func() { klog.LogToStderr(true) })

	for name, repeat := range echoes {
		for encoding, encode := range encodings {
			for _, credential := range []string{token, password, path} {
				if credential == path && name == "an object" {
					continue // which part of a path is a credential is not known
				}

				for _, from := range []string{"/api/v1/namespaces/kube-system", "/api/v1/configmaps", "/api"} {
					t.Run(strings.Join([]string{name, encoding, credential[:4], from}, ", "), func(t *testing.T) {
						g := NewWithT(t)
						server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							switch strings.TrimPrefix(r.URL.Path, "/"+path) {
							case from:
								repeat(w, encode(credential))
							case "/api/v1/namespaces/kube-system":
								echoes["an object"](w, "there")
							default:
								http.NotFound(w, r)
							}
						}))
						t.Cleanup(server.Close)

						config := kubeConfig(server.URL + "/" + path + `", insecure-skip-tls-verify: true, x: "`)
						if config = strings.Replace(config, "hunter2", token, 1); credential == password {
							config = strings.Replace(config, "token: "+token, "username: me, password: "+password, 1)
						}

						pool, _ := newPool(t, secret("there", config))
						p := provider("a", "", "there")

						for range 2 { // the cluster may be reached only the first time
							there, err := pool.For(t.Context(), p)
							told := fmt.Sprint(err)

							if err == nil {
								told = fmt.Sprint(there.ClusterUID()) + use(t.Context(), there)
							}

							for _, hidden := range []string{credential, encode(credential), path, basic} {
								g.Expect(told).NotTo(ContainSubstring(hidden))
							}
						}
					})
				}
			}
		}
	}

	klog.Flush()

	for _, hidden := range []string{token, password, path, basic} {
		NewWithT(t).Expect(log.String()).NotTo(ContainSubstring(hidden))
	}
}

// use uses a cluster by each client, and returns the errors.
func use(ctx context.Context, there *clusters.Target) string {
	_, listed := there.Metadata.Resource(configMaps).List(ctx, metav1.ListOptions{})
	_, mapped := there.Client.RESTMapper().RESTMapping(schema.GroupKind{Kind: "X"}, "v1")

	read := &metav1.PartialObjectMetadata{}
	read.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	got := there.APIReader.Get(ctx, client.ObjectKey{Name: "kube-system"}, read)

	return fmt.Sprint(listed, mapped, got)
}

// TestNamesOfCertificatesAreNotRepeated: a server that has learned the token writes it into its certificate.
func TestNamesOfCertificatesAreNotRepeated(t *testing.T) {
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"hunter2-of-the-tenant"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())

	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)

	config := kubeConfig(strings.Replace(server.URL, "127.0.0.1", "localhost", 1))
	pool, _ := newPool(t, secret("there", strings.Replace(config, "hunter2", "hunter2-of-the-tenant", 1)))
	_, err = pool.For(t.Context(), provider("a", "", "there"))
	g.Expect(err).To(HaveField("Reason", v1alpha2.ClusterUnreachableReason))
	g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")))
}
