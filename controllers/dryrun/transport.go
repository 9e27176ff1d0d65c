// Package dryrun lets a program send its requests to an API server without changing anything there: what it writes is
// tried as a dry run, and what it reads shows that as if it had been written.
package dryrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// Transport sends only requests that change nothing. It is safe for concurrent use.
type Transport struct {
	// OnWrite is called after a request that would have changed something; it may be nil.
	OnWrite func()

	mu sync.Mutex
	// objects are those that would have been written; nil for those that would have been deleted.
	objects map[address]*unstructured.Unstructured
	version uint64
	writes  []Write
	denied  []string
}

// Write is a request that was not sent.
type Write struct {
	// Verb of the request, such as create or patch.
	Verb string `json:"verb"`
	// Object is the kind, and the namespace and name.
	Object string `json:"object"`
}

// firstVersion is a resource version that is newer than those of API servers.
const firstVersion = 1 << 60

// New returns a transport that has not been used.
func New() *Transport {
	return &Transport{objects: map[address]*unstructured.Unstructured{}, version: firstVersion}
}

// Wrap returns a connection whose requests change nothing.
func (t *Transport) Wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(t.RoundTripper)
	// Objects are read from and written to answers.
	config.ContentType, config.AcceptContentTypes = jsonType, jsonType

	return config
}

const jsonType = "application/json"

// Writes returns the requests that would have changed something, in their order.
func (t *Transport) Writes() []Write {
	t.mu.Lock()
	defer t.mu.Unlock()

	return slices.Clone(t.writes)
}

// Denied returns what the user of the connection may not do, in the order of the attempts.
func (t *Transport) Denied() []string {
	t.mu.Lock()
	defer t.mu.Unlock()

	return slices.Clone(t.denied)
}

// Update lets a function change the objects that would have been written, and reports whether it has changed one.
func (t *Transport) Update(change func(*unstructured.Unstructured) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()

	changed := false

	for _, o := range t.objects {
		if o != nil && change(o) {
			t.version++
			o.SetResourceVersion(fmt.Sprint(t.version))

			changed = true
		}
	}

	return changed
}

// RoundTripper returns what sends requests by next.
func (t *Transport) RoundTripper(next http.RoundTripper) http.RoundTripper {
	return &roundTripper{transport: t, next: next}
}

type roundTripper struct {
	transport *Transport
	next      http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transports below.
func (r *roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip sends a request, or answers it.
func (r *roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	at, isObject := parse(request.URL)

	switch {
	case request.Method == http.MethodHead, request.Method == http.MethodGet && !isObject:
		return r.next.RoundTrip(request)
	case request.Method == http.MethodGet:
		return r.read(request, at)
	case !isObject:
		return nil, fmt.Errorf("%s %s is not sent, because it may change something", request.Method, request.URL.Path)
	case at.isReview():
		return r.next.RoundTrip(request)
	}

	return r.write(request, at)
}

// read answers a request for an object or a list as if what would have been written had been.
func (r *roundTripper) read(request *http.Request, at address) (*http.Response, error) {
	if at.name == "" {
		return r.list(request, at)
	}

	found, known := r.transport.get(at)

	switch {
	case !known:
		return r.noteDenied(request, at, "get")
	case found == nil:
		return failure(request, apierrors.NewNotFound(at.groupResource(), at.name))
	}

	return success(request, at, found, http.StatusOK)
}

func (r *roundTripper) list(request *http.Request, at address) (*http.Response, error) {
	written := r.transport.in(at)
	if len(written) == 0 || request.URL.Query().Get("watch") != "" {
		return r.noteDenied(request, at, "list")
	}

	request = request.Clone(request.Context())
	request.Header.Set("Accept", accepted(request))

	response, err := r.noteDenied(request, at, "list")
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}

	list := &unstructured.UnstructuredList{}
	if err := decode(response, list); err != nil {
		return nil, err
	}

	list.Items = merge(list.Items, written, request)

	return answer(request, http.StatusOK, list.UnstructuredContent())
}

// merge replaces the items of a list by what would have been written, and adds new ones to the first page.
func merge(
	items []unstructured.Unstructured, written map[address]*unstructured.Unstructured, request *http.Request,
) []unstructured.Unstructured {
	query := request.URL.Query()
	merged := slices.DeleteFunc(items, func(o unstructured.Unstructured) bool {
		for at := range written {
			if at.name == o.GetName() && at.namespace == o.GetNamespace() {
				return true
			}
		}

		return false
	})

	if query.Get("continue") != "" {
		return merged
	}

	order := func(a, b address) int { return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name) }

	for _, at := range slices.SortedFunc(maps.Keys(written), order) {
		if o := written[at]; o != nil && selects(query, o) {
			merged = append(merged, *shown(request, o))
		}
	}

	return merged
}

// noteDenied sends a request, and notes if the user may not make it.
func (r *roundTripper) noteDenied(request *http.Request, at address, verb string) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && isDenied(request, response) {
		r.transport.deny(verb, at)
	}

	return response, err
}

// isDenied reports whether the user may not make a request. What an account may not do that is impersonated is an
// answer, and the operator gets the same.
func isDenied(request *http.Request, response *http.Response) bool {
	impersonates := request.Header.Get(authenticationv1.ImpersonateUserHeader) != ""

	return response.StatusCode == http.StatusForbidden && (!impersonates || isAbout(response, "cannot impersonate"))
}

// write tries a request that changes an object. What cannot be tried is assumed to succeed.
func (r *roundTripper) write(request *http.Request, at address) (*http.Response, error) {
	body, err := readBody(request)
	if err != nil {
		return nil, err
	}

	before, known := r.transport.get(at)
	if at.isEvent() {
		known = true
	}

	if !known {
		response, err := r.try(request, at, body)
		if err != nil {
			return nil, err
		}

		if !isUntried(request, response) {
			return r.keep(request, at, response)
		}

		if isDenied(request, response) {
			r.transport.deny(verbs[request.Method], at)
		}

		before, err = r.current(request, at)
		if err != nil {
			return nil, err
		}
	}

	after, failed := apply(change{method: request.Method, contentType: request.Header.Get("Content-Type"), body: body},
		at, before, r.transport.nextVersion)
	if failed != nil {
		return failure(request, failed)
	}

	r.transport.set(request, at, after)

	shown := after
	if shown == nil {
		shown = before
	}

	status := http.StatusOK
	if request.Method == http.MethodPost {
		status = http.StatusCreated
	}

	return success(request, at, shown, status)
}

// isUntried reports whether the API server has not tried a request: the user may not make it, an admission webhook
// cannot be asked without effects, or the namespace would have been created before.
func isUntried(request *http.Request, response *http.Response) bool {
	return isDenied(request, response) ||
		response.StatusCode == http.StatusBadRequest && isAbout(response, "dry run") ||
		response.StatusCode == http.StatusNotFound && isAbout(response, "namespaces ")
}

// isAbout reports whether the message of a response contains a text. The response can be read again.
func isAbout(response *http.Response, text string) bool {
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))

	return err == nil && strings.Contains(string(body), text)
}

// try sends a request as a dry run.
func (r *roundTripper) try(request *http.Request, at address, body []byte) (*http.Response, error) {
	trial := request.Clone(request.Context())
	trial.Body, trial.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	trial.Header.Set("Accept", accepted(request))

	if at.name != "" || request.Method == http.MethodPost {
		trial.Header.Set("Accept", jsonType)
	}

	query := trial.URL.Query()
	query.Set("dryRun", metav1.DryRunAll)

	address := *trial.URL
	address.RawQuery = query.Encode()
	trial.URL = &address

	return r.next.RoundTrip(trial)
}

// keep keeps the answer to a request that was tried.
func (r *roundTripper) keep(
	request *http.Request, at address, response *http.Response,
) (*http.Response, error) {
	if response.StatusCode >= http.StatusMultipleChoices {
		return response, nil
	}

	found := &unstructured.Unstructured{}
	if err := decode(response, found); err != nil {
		return nil, err
	}

	if request.Method == http.MethodDelete {
		before, err := r.current(request, at)
		if err == nil && before != nil {
			r.transport.set(request, at, deleted(before))
		}

		return success(request, at, found, response.StatusCode)
	}

	if !isTrial(request) {
		found.SetResourceVersion(r.transport.nextVersion())
		r.transport.set(request, at, found)
	}

	return success(request, at, found, response.StatusCode)
}

// isTrial reports whether a request is a dry run itself.
func isTrial(request *http.Request) bool { return request.URL.Query().Get("dryRun") != "" }

// current returns an object as the API server has it; nil if it has none.
func (r *roundTripper) current(request *http.Request, at address) (*unstructured.Unstructured, error) {
	if at.name == "" {
		return nil, nil
	}

	read := request.Clone(request.Context())
	read.Method, read.URL, read.Body, read.ContentLength = http.MethodGet, at.url(request.URL), http.NoBody, 0
	read.Header.Del("Content-Type")
	read.Header.Set("Accept", jsonType)

	response, err := r.next.RoundTrip(read)
	if err != nil {
		return nil, err
	}

	if response.StatusCode != http.StatusOK {
		return nil, response.Body.Close()
	}

	found := &unstructured.Unstructured{}

	return found, decode(response, found)
}

// get returns an object that would have been written, and whether there is one; nil for one that would be deleted.
func (t *Transport) get(at address) (*unstructured.Unstructured, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	found, known := t.objects[at.object()]
	if found == nil {
		return nil, known
	}

	return found.DeepCopy(), true
}

// in returns the objects of a list that would have been written.
func (t *Transport) in(at address) map[address]*unstructured.Unstructured {
	t.mu.Lock()
	defer t.mu.Unlock()

	found := map[address]*unstructured.Unstructured{}

	for key, o := range t.objects {
		if key.lists(at) {
			found[key] = o.DeepCopy()
		}
	}

	return found
}

// set notes that an object would have been written, or deleted if it is nil; nothing if the request is a trial itself.
func (t *Transport) set(request *http.Request, at address, o *unstructured.Unstructured) {
	if isTrial(request) {
		return
	}

	if t.OnWrite != nil {
		defer t.OnWrite()
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	if o != nil {
		at.name, at.namespace = o.GetName(), o.GetNamespace()
	}

	if !at.isEvent() {
		t.objects[at.object()] = o
	}

	t.writes = append(t.writes, Write{Verb: verbs[request.Method], Object: at.describe(o)})
}

func (t *Transport) nextVersion() string {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.version++

	return fmt.Sprint(t.version)
}

func (t *Transport) deny(verb string, at address) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.denied = append(t.denied, verb+" "+at.describeResource())
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

func readBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer request.Body.Close()

	return io.ReadAll(request.Body)
}

// decode reads an answer into an object or a list.
func decode(response *http.Response, into json.Unmarshaler) error {
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}

	return into.UnmarshalJSON(body)
}

// accepted returns what a request accepts, without formats other than JSON.
func accepted(request *http.Request) string {
	var kept []string

	for value := range strings.SplitSeq(request.Header.Get("Accept"), ",") {
		if value = strings.TrimSpace(value); strings.HasPrefix(value, jsonType) {
			kept = append(kept, value)
		}
	}

	if len(kept) == 0 {
		return jsonType
	}

	return strings.Join(kept, ",")
}

// shown returns an object as a request asks for it: completely, or its metadata.
func shown(request *http.Request, o *unstructured.Unstructured) *unstructured.Unstructured {
	if !strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return o
	}

	partial := &unstructured.Unstructured{Object: map[string]any{"metadata": o.Object["metadata"]}}
	partial.SetAPIVersion(metav1.SchemeGroupVersion.String())
	partial.SetKind("PartialObjectMetadata")

	return partial
}

// success answers a request with an object.
func success(request *http.Request, at address, o *unstructured.Unstructured, status int) (*http.Response, error) {
	if o == nil {
		return answer(request, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	}

	if o.GetKind() != "Status" && at.version != "" {
		o.SetAPIVersion(at.groupVersion())
	}

	return answer(request, status, shown(request, o).Object)
}

// failure answers a request with an error.
func failure(request *http.Request, err *apierrors.StatusError) (*http.Response, error) {
	refused := err.Status()
	refused.Kind, refused.APIVersion = "Status", "v1"

	return answer(request, int(refused.Code), refused)
}

func answer(request *http.Request, status int, content any) (*http.Response, error) {
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}

	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": []string{jsonType}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: request,
	}, nil
}

// selects reports whether the selectors of a list select an object.
func selects(query url.Values, o *unstructured.Unstructured) bool {
	return selectsLabels(query.Get("labelSelector"), o) && selectsFields(query.Get("fieldSelector"), o)
}
