package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/capstan-project/capstan/test/bench/measure"
)

// Names of cluster-wide objects contain everywhere in all targets, since clusters have the same providers. In the API
// server that the targets share, they contain the target's own token instead, which is as long.
const (
	everywhere = "target000"
	ownToken   = "target%03d"
	maxTargets = 999
)

// targetLabel is a label of the cluster-wide objects of providers. Its value contains everywhere, too.
const targetLabel = "bench.capstan.dev/target"

// target is a remote cluster: a server with its own certificate in front of an API server that all targets share. It
// looks like an API server of its own: kube-system has another UID, and objects and kinds of other targets are
// invisible.
type target struct {
	namespace   string // of its provider resources, and of what they install
	token, uid  string
	certificate []byte // PEM
	address     string
	delay       time.Duration
	seen        *requests
	bytes       atomic.Int64 // of requests and responses, without compression

	proxy *httputil.ReverseProxy
	front *httptest.Server
}

// newTarget starts a target with a number from 1 to maxTargets, in front of an API server.
func newTarget(number int, server *rest.Config, seen *requests, delay time.Duration) (*target, error) {
	t := &target{
		namespace: fmt.Sprintf("target-%03d", number),
		token:     fmt.Sprintf(ownToken, number),
		uid:       fmt.Sprintf("00000000-0000-4000-8000-%012d", number),
		seen:      seen,
		delay:     delay,
	}

	var err error

	if t.proxy, err = measure.Proxy(server); err != nil {
		return nil, err
	}

	t.proxy.ModifyResponse = t.disguise

	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, err
	}

	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}

	t.certificate = certificate
	t.front = httptest.NewUnstartedServer(t)
	t.front.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	t.front.EnableHTTP2 = true
	t.front.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.front.StartTLS()
	t.address = t.front.Listener.Addr().String()

	return t, nil
}

func (t *target) stop() {
	t.front.CloseClientConnections()
	t.front.Close()
}

var infos = request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// ServeHTTP counts a request and passes it on.
func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	t.seen.add(t.namespace, info, r)
	measure.Pause(r.Context(), t.delay)

	if info.IsResourceRequest && (info.Verb == "list" || info.Verb == "watch") && info.Namespace == "" {
		t.restrict(r.URL, info.Resource)
	}

	if err := t.rename(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	out := &renamer{ResponseWriter: w, from: []byte(t.token), to: []byte(everywhere), sent: &t.bytes}
	t.proxy.ServeHTTP(out, r)
	out.end()
}

// clusterWide are the resources without namespace that providers have or that an operator may look for.
var clusterWide = sets.New(
	"customresourcedefinitions", "clusterroles", "clusterrolebindings", "apiservices",
	"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
	"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	"validatingadmissionpolicies", "validatingadmissionpolicybindings",
)

// restrict makes the API server select the target's own objects from those of the whole cluster.
func (t *target) restrict(u *url.URL, resource string) {
	switch {
	case resource == "namespaces":
		require(u, "fieldSelector", "metadata.name="+t.namespace)
	case clusterWide.Has(resource):
		require(u, "labelSelector", targetLabel+"="+everywhere)
	default:
		u.Path = path.Join(path.Dir(u.Path), "namespaces", t.namespace, path.Base(u.Path))
	}
}

// require adds a requirement to a selector.
func require(u *url.URL, selector, requirement string) {
	query := u.Query()
	if given := query.Get(selector); given != "" {
		requirement = given + "," + requirement
	}

	query.Set(selector, requirement)

	u.RawQuery = query.Encode()
}

// rename replaces the names of a request by those in the shared API server.
func (t *target) rename(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}

	t.bytes.Add(int64(len(body)))

	r.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte(everywhere), []byte(t.token))))
	r.URL.Path = strings.ReplaceAll(r.URL.Path, everywhere, t.token)
	r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, everywhere, t.token)
	// Names can only be replaced in responses that are not compressed.
	r.Header.Set("Accept-Encoding", "identity")

	return nil
}

// disguise changes the responses that would show what the targets share: the identity of the cluster, and the API
// groups of other targets.
func (t *target) disguise(r *http.Response) error {
	var change func(document map[string]any)

	switch r.Request.URL.Path {
	case "/api/v1/namespaces/kube-system":
		change = func(document map[string]any) {
			if metadata, ok := document["metadata"].(map[string]any); ok {
				metadata["uid"] = t.uid
			}
		}
	case "/apis":
		change = t.hideGroups
	}

	if change == nil || r.StatusCode != http.StatusOK {
		return nil
	}

	document := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&document); err != nil {
		return err
	}

	if err := r.Body.Close(); err != nil {
		return err
	}

	change(document)

	changed, err := json.Marshal(document)
	if err != nil {
		return err
	}

	r.Body = io.NopCloser(bytes.NewReader(changed))
	r.ContentLength = int64(len(changed))
	r.Header.Set("Content-Length", strconv.Itoa(len(changed)))

	return nil
}

// hideGroups removes the groups of other targets from a list of API groups, in both of its formats.
func (t *target) hideGroups(document map[string]any) {
	name := func(group any) string {
		fields, _ := group.(map[string]any)
		if metadata, ok := fields["metadata"].(map[string]any); ok {
			fields = metadata
		}

		name, _ := fields["name"].(string)

		return name
	}

	for _, field := range []string{"groups", "items"} {
		groups, ok := document[field].([]any)
		if !ok {
			continue
		}

		own := make([]any, 0, len(groups))

		for _, group := range groups {
			if !t.foreign(name(group)) {
				own = append(own, group)
			}
		}

		document[field] = own
	}
}

// foreign reports whether an API group is one of another target.
func (t *target) foreign(group string) bool {
	return strings.HasPrefix(group, "target") && !strings.HasPrefix(group, t.token)
}

// renamer replaces a text in a response by another one that is as long.
type renamer struct {
	http.ResponseWriter
	from, to []byte
	sent     *atomic.Int64
	rest     []byte // may be the beginning of from
}

// Write writes everything but an end in which from may begin.
func (r *renamer) Write(part []byte) (int, error) {
	text := bytes.ReplaceAll(append(r.rest, part...), r.from, r.to)

	kept := min(len(text), len(r.from)-1)
	for !bytes.HasPrefix(r.from, text[len(text)-kept:]) {
		kept--
	}

	r.rest = bytes.Clone(text[len(text)-kept:])

	return len(part), r.send(text[:len(text)-kept])
}

// end writes what is left at the end of the response.
func (r *renamer) end() { _ = r.send(r.rest) }

func (r *renamer) send(text []byte) error {
	r.sent.Add(int64(len(text)))
	_, err := r.ResponseWriter.Write(text)

	return err
}

// Unwrap returns the writer that can be flushed.
func (r *renamer) Unwrap() http.ResponseWriter { return r.ResponseWriter }
