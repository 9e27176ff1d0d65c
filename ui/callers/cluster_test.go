package callers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// cluster is an API server that knows users by their tokens, and what they may read.
type cluster struct {
	url string

	mu sync.Mutex
	// users are names by tokens. The user proxy may impersonate users, but not groups.
	users map[string]string
	// allowed has "USER VERB RESOURCE NAMESPACE", with an empty namespace for all of them.
	allowed map[string]bool
	broken  bool
	headers []http.Header // of all requests
	reads   int           // by the operator
}

func newCluster(t *testing.T) *cluster {
	t.Helper()

	c := &cluster{
		users:   map[string]string{"jane-token": "jane", "proxy-token": "proxy", "none-token": "system:anonymous"},
		allowed: map[string]bool{},
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL

	return c
}

func (c *cluster) change(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()

	change()
}

func (c *cluster) requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.headers)
}

// ServeHTTP answers reviews.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.headers = append(c.headers, r.Header)

	user, code := c.user(r.Header)
	if code != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   "Failure", Code: int32(code), Reason: reasons[code], Message: "refused",
		})

		return
	}

	var answer any

	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		review := &authenticationv1.SelfSubjectReview{}
		review.Status.UserInfo = authenticationv1.UserInfo{Username: user}

		if user == "system:anonymous" {
			review.Status.UserInfo.Groups = []string{"system:unauthenticated"}
		}

		answer = review
	case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		review := &authorizationv1.SelfSubjectAccessReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		a := review.Spec.ResourceAttributes
		rule := user + " " + a.Verb + " " + a.Resource + " "
		review.Status.Allowed = c.allowed[user] || c.allowed[rule] || c.allowed[rule+a.Namespace]
		answer = review
	}

	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
}

// user returns who sends a request, or the code of a refusal.
func (c *cluster) user(header http.Header) (string, int) {
	user, known := c.users[header.Get("Authorization")[len("Bearer "):]]
	other := header.Get("Impersonate-User")

	switch {
	case c.broken:
		return "", http.StatusInternalServerError
	case !known:
		return "", http.StatusUnauthorized
	case other == "" && header.Get("Impersonate-Group") == "":
		return user, 0
	case user != "proxy" || header.Get("Impersonate-Group") != "":
		return "", http.StatusForbidden
	default:
		return other, 0
	}
}

// may allows a user to read resources; see allowed.
func (c *cluster) may(rules ...string) {
	c.change(func() {
		for _, rule := range rules {
			c.allowed[rule] = true
		}
	})
}

const secretValue = "s3cr3t-v4lue"

// access returns the access to a cluster with a provider in each of two namespaces, and core.
func (c *cluster) access(t *testing.T) *Access {
	t.Helper()

	count := func() {
		c.mu.Lock()
		defer c.mu.Unlock()

		c.reads++
	}
	variables := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "variables"},
		Data:       map[string][]byte{"PASSWORD": []byte(secretValue)},
	}

	g := NewWithT(t)
	a, err := New(Options{Config: &rest.Config{Host: c.url, BearerToken: "operator-token"}, Mapper: mapper()})
	g.Expect(err).NotTo(HaveOccurred())

	builder := func() *fake.ClientBuilder { return fake.NewClientBuilder().WithScheme(a.scheme) }
	a.options.Cache = builder().WithObjects(
		&v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: "cluster-api"}},
		infrastructure("capa-system", "aws"), infrastructure("capz-system", "azure"),
	).Build()
	a.options.Facts = &facts.Reader{
		Client: builder().WithObjects(variables, event()).WithLists(deployments()).
			WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
				return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
			}).
			WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
					options ...client.GetOption,
				) error {
					count()
					return c.Get(ctx, key, o, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
					options ...client.ListOption,
				) error {
					count()
					return c.List(ctx, list, options...)
				},
			}).Build(),
		Releases: sampleRelease{},
	}

	return a
}

func infrastructure(namespace, name string) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(name),
	}}
	p.Spec.SecretName = "variables"
	p.Spec.Variables = map[string]string{"REGION": secretValue}
	p.Status.History = []v1alpha2.ReleaseRevision{{Revision: 1, Status: "deployed"}}

	return p
}

func event() *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "capa-system", Name: "event"},
		InvolvedObject: corev1.ObjectReference{UID: "aws"}, Reason: "Upgraded",
	}
}

func deployments() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apps/v1")
	list.SetKind("DeploymentList")
	list.Items = []unstructured.Unstructured{*releaseObject("apps/v1", "Deployment", "manager")}

	return list
}

// releaseObject returns an object of the release of aws.
func releaseObject(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace("capa-system")
	o.SetName(name)

	return o
}

// mapper knows the kinds of the tests.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)

	for _, t := range v1alpha2.ProviderTypes() {
		m.Add(v1alpha2.GroupVersion.WithKind(string(t)), meta.RESTScopeNamespace)
	}

	for _, kind := range []string{"Secret", "Event"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}

	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	}, meta.RESTScopeRoot)

	return m
}

// sampleRelease are releases that have one revision with a Deployment, a Secret and an object of a kind without CRD.
type sampleRelease struct{}

func (sampleRelease) Observe(_ context.Context, name types.NamespacedName) (state.History, error) {
	if name.Namespace != "capa-system" {
		return state.History{}, errors.New("there is no such release")
	}

	return state.History{Release: name, Revisions: []state.Revision{{Number: 1, Status: state.StatusDeployed}}}, nil
}

func (sampleRelease) Read(context.Context, types.NamespacedName, state.Revision) (*release.Record, error) {
	deployment := releaseObject("apps/v1", "Deployment", "manager")
	_ = unstructured.SetNestedSlice(deployment.Object, []any{map[string]any{
		"name": "manager", "image": "registry.example.com/aws:v1", "args": []any{"--password=" + secretValue},
	}}, "spec", "template", "spec", "containers")

	secret := releaseObject("v1", "Secret", "credentials")
	secret.Object["stringData"] = map[string]any{"password": secretValue}

	return &release.Record{
		AppVersion: "v1.0.0", Description: "Install complete",
		Objects: []*unstructured.Unstructured{deployment, secret, releaseObject("example.com/v1", "Unknown", "instance")},
	}, nil
}
