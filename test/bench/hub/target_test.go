package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/test/bench/measure"
)

// behindTarget returns target 17 in front of a server, and a client that trusts only that target.
func behindTarget(t *testing.T, server http.HandlerFunc) (*target, *http.Client) {
	t.Helper()

	behind := httptest.NewServer(server)
	t.Cleanup(behind.Close)

	seventeenth, err := newTarget(17, &rest.Config{Host: behind.URL}, &requests{}, 0)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(seventeenth.stop)

	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(seventeenth.certificate)

	return seventeenth, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
}

// send sends a request to a target and returns the response.
func send(t *testing.T, to *target, client *http.Client, method, path, body string) string {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+to.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}

	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

func TestTargetAsksOnlyForItsOwnObjects(t *testing.T) {
	to, client := behindTarget(t, func(w http.ResponseWriter, r *http.Request) {
		uri, _ := url.QueryUnescape(r.URL.RequestURI())
		_ = json.NewEncoder(w).Encode(strings.ReplaceAll(uri, "target017", "its own token"))
	})

	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

	for name, c := range map[string]struct{ path, want string }{
		"objects of all namespaces": {
			"/apis/apps/v1/deployments?labelSelector=a", "/apis/apps/v1/namespaces/target-017/deployments?labelSelector=a",
		},
		"a watch of all namespaces": {
			"/api/v1/secrets?watch=true", "/api/v1/namespaces/target-017/secrets?watch=true",
		},
		"a namespace": {"/api/v1/namespaces/target-017/pods", "/api/v1/namespaces/target-017/pods"},
		"namespaces":  {"/api/v1/namespaces", "/api/v1/namespaces?fieldSelector=metadata.name=target-017"},
		"CRDs":        {crds, crds + "?labelSelector=bench.capstan.dev/target=its own token"},
		"labeled CRDs": {
			crds + "?labelSelector=a&watch=1", crds + "?labelSelector=a,bench.capstan.dev/target=its own token&watch=1",
		},
		"one CRD": {crds + "/target000s.target000.x-k8s.io", crds + "/its own tokens.its own token.x-k8s.io"},
		"objects of a provider": {
			"/apis/target000.x-k8s.io/v1/target000s",
			"/apis/its own token.x-k8s.io/v1/namespaces/target-017/its own tokens",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			if err := json.Unmarshal([]byte(send(t, to, client, http.MethodGet, c.path, "")), &got); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTargetLooksLikeAClusterOfItsOwn(t *testing.T) {
	to, client := behindTarget(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/namespaces/kube-system":
			_, _ = io.WriteString(w, `{"metadata": {"name": "kube-system", "uid": "shared"}}`)
		case "/apis":
			_, _ = io.WriteString(w, `{"items": [{"metadata": {"name": "apps"}}, {"metadata": {"name": "target016.x-k8s.io"}},
				{"metadata": {"name": "target017.x-k8s.io"}}]}`)
		}
	})

	const kubeSystem = "/api/v1/namespaces/kube-system"

	for path, want := range map[string]string{
		kubeSystem: `{"metadata":{"name":"kube-system","uid":"00000000-0000-4000-8000-000000000017"}}`,
		"/apis":    `{"items":[{"metadata":{"name":"apps"}},{"metadata":{"name":"target000.x-k8s.io"}}]}`,
	} {
		if diff := cmp.Diff(want, send(t, to, client, http.MethodGet, path, "")); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestTargetReplacesNames(t *testing.T) {
	const request = "a target000 and target000s"

	received := make(chan string, 1)
	to, client := behindTarget(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- string(body)

		_, _ = io.WriteString(w, "a-target017-b, target018")
	})

	begin := time.Now()
	response := send(t, to, client, http.MethodPost, "/api/v1/namespaces/a/secrets?dryRun=All", request)

	if diff := cmp.Diff("a target017 and target017s", <-received); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff("a-target000-b, target018", response); diff != "" {
		t.Error(diff)
	}

	send(t, to, client, http.MethodDelete, "/api/v1/namespaces/a/secrets/b", "")

	want := "     2 in total, of which 1 write\n     1 create secrets (dry run)\n     1 delete secrets\n"
	if diff := cmp.Diff(want, measure.ByKind(to.seen.to([]*target{to}, begin))); diff != "" {
		t.Error(diff)
	}

	const size = int64(len(request) + 2*len("a-target000-b, target018"))
	if got := to.bytes.Load(); got != size {
		t.Errorf("%d bytes were counted, want %d", got, size)
	}
}

func TestRenamerOfParts(t *testing.T) {
	written := httptest.NewRecorder()
	renamer := &renamer{
		ResponseWriter: written, from: []byte("target017"), to: []byte("target000"), sent: &atomic.Int64{},
	}

	for _, step := range []struct{ part, want string }{
		{"a-tar", "a-"},
		{"get017-b, target0", "a-target000-b, "},
		{"1", "a-target000-b, "},
		{"7, targettarget017\n", "a-target000-b, target000, targettarget000\n"},
		{"targ", "a-target000-b, target000, targettarget000\n"},
	} {
		if n, err := io.WriteString(renamer, step.part); n != len(step.part) || err != nil {
			t.Fatalf("%q: %d bytes were written: %v", step.part, n, err)
		}

		if diff := cmp.Diff(step.want, written.Body.String()); diff != "" {
			t.Errorf("after %q: %s", step.part, diff)
		}
	}

	renamer.end()

	if diff := cmp.Diff("a-target000-b, target000, targettarget000\ntarg", written.Body.String()); diff != "" {
		t.Error(diff)
	}
}
