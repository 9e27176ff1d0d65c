package attack

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// site is a namespace with Secrets of a developer, in which an administrator has a provider. The account of the
// provider may do everything, as the operator itself may by default.
type site struct {
	*arena

	home small
	// user may create and read Secrets in the namespace, and nothing else. Each site has its own: what one gains by
	// an attempt that succeeds must not help in others.
	user      string
	developer client.Client
	// labels of a record that the operator has written.
	labels map[string]string
	// annotations with which the administrator creates the provider.
	annotations map[string]string
}

// site creates a site. Neither a binding of the developer to cluster-admin may ever exist, nor may an object
// of the victim be written.
func (a *arena) site() *site {
	a.Helper()

	s := &site{arena: a, home: small{"room-" + a.name, a.name, "v1.0.0", ""}, user: "developer-" + a.name}
	s.developer = a.as(a, s.user)
	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: s.user}

	a.provide(
		&corev1.Namespace{ObjectMeta: named("", s.home.namespace)},
		&corev1.ServiceAccount{ObjectMeta: named(s.home.namespace, "limited")},
		s.prey(),
	)
	a.bind(a.T, "", "cluster-admin", account(s.home.namespace, "limited"))
	a.grant(a.T, s.home.namespace, "developer", user, rule("", []string{"secrets"}, "create", "get", "list", "update"))
	a.Eventually(func() error {
		return s.developer.List(a.ctx, &corev1.SecretList{}, client.InNamespace(s.home.namespace))
	}).Should(Succeed(), "the API server knows the permissions")

	a.neverWritten(&rbacv1.ClusterRoleBinding{ObjectMeta: named("", a.name+"-is-admin")})
	a.neverWritten(s.prey())

	return s
}

// provide creates objects as an administrator.
func (a *arena) provide(objects ...client.Object) {
	a.Helper()

	for _, o := range objects {
		a.Expect(a.admin.Create(a.ctx, o)).To(Succeed(), "%T %s", o, o.GetName())
	}
}

// neverWritten declares that an object must not be written from now on, not even for a moment.
func (a *arena) neverWritten(o client.Object) {
	a.Helper()

	kind, err := apiutil.GVKForObject(o, harness.Scheme())
	a.Expect(err).NotTo(HaveOccurred())

	only := &client.ListOptions{
		Namespace: o.GetNamespace(), FieldSelector: fields.OneTermEqualSelector("metadata.name", o.GetName()),
	}
	list := func(ctx context.Context) *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		a.Expect(a.admin.List(ctx, list, only)).To(Succeed())

		return list
	}

	before := list(a.ctx)
	since := *only
	since.Raw = &metav1.ListOptions{ResourceVersion: before.ResourceVersion}

	changes, err := a.admin.Watch(a.ctx, before.DeepCopy(), &since)
	a.Expect(err).NotTo(HaveOccurred())
	a.Cleanup(changes.Stop)

	var written atomic.Bool

	go func() {
		for event := range changes.ResultChan() {
			if event.Type != watch.Error {
				written.Store(true)
			}
		}
	}()

	a.never(fmt.Sprintf("%s %s was written", kind.Kind, o.GetName()), func(ctx context.Context) bool {
		return written.Load() || versionsOf(list(ctx)) != versionsOf(before)
	})
}

// versionsOf identifies the objects of a list and their content.
func versionsOf(list *metav1.PartialObjectMetadataList) string {
	var all strings.Builder
	for _, o := range list.Items {
		fmt.Fprintln(&all, o.UID, o.ResourceVersion)
	}

	return all.String()
}

// prey is an object of the victim that the operator may change and delete.
func (s *site) prey() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: named(victim, "prey-"+s.name), Data: map[string]string{"text": "the victim's"}}
}

// preyed is the victim's object as the developer wants it, as YAML after a line of three hyphens.
func (s *site) preyed() string { return "---\n" + note("prey-"+s.name, victim, "the developer's") }

// binding makes the developer cluster-admin, as YAML after a line of three hyphens.
func (s *site) binding() string { return s.adminBindingOf(s.user) }

// kept is binding with annotations that keep it when a release no longer has it.
func (s *site) kept() string {
	return strings.Replace(s.binding(), "metadata: {",
		"metadata: {annotations: {helm.sh/resource-policy: keep, capstan.dev/delete-policy: Orphan}, ", 1)
}

// record returns the record of a revision, as if the operator had written it.
func (s *site) record(revision int, status, manifest string) *corev1.Secret {
	s.Helper()
	return s.forgedFor(s.home, revision, status, manifest)
}

// install creates the source and the provider, with a change of its spec that may be nil, and returns the
// operator's answer.
func (s *site) install(change func(*v1alpha2.ProviderSpec)) string {
	s.Helper()
	s.start(change)

	return s.settle()
}

// start is install, but returns with the operator's first answer.
func (s *site) start(change func(*v1alpha2.ProviderSpec)) {
	s.Helper()

	p := s.home.resource()
	p.Annotations = s.annotations

	if change != nil {
		change(&p.Spec)
	}

	s.Expect(client.IgnoreAlreadyExists(s.admin.Create(s.ctx, s.home.configMap()))).To(Succeed())
	s.provide(p)
	s.outcome(p)
}

// installHealthy installs the provider without anything planted.
func (s *site) installHealthy() {
	s.Helper()
	s.Expect(s.install(nil)).To(HavePrefix(v1alpha2.HealthyReason))
}

// change patches the spec and returns the operator's answer.
func (s *site) change(spec string) string {
	s.Helper()

	p := s.home.resource()
	s.Expect(s.admin.Patch(s.ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))).To(Succeed())
	s.outcome(p)

	return s.settle()
}

// settle has the operator look at the provider again and returns its answer.
func (s *site) settle() string {
	s.Helper()

	p := s.home.resource()
	s.lookAgain(p, fmt.Sprint("settle-", s.number.Add(1)))

	return s.outcome(p)
}

// remove deletes the provider and returns what became of it.
func (s *site) remove() string {
	s.Helper()

	p := s.home.resource()
	s.Expect(s.admin.Delete(s.ctx, p)).To(Succeed())

	return s.removal(p)
}

// stuck gives a provider a source that does not answer.
func (s *site) stuck(spec *v1alpha2.ProviderSpec) {
	spec.FetchConfig = &v1alpha2.FetchConfiguration{
		URL: "https://" + s.host + ":1/v1.0.0/infrastructure-components.yaml",
	}
}

// unavailable is a Deployment that does not become available, as YAML after a line of three hyphens.
func (s *site) unavailable() string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {nodeSelector: {no: node}, containers: [{name: manager, image: "registry.example.com/x:v1.0.0"}]}
`, s.name, s.home.namespace)
}

// failing gives the provider a Deployment that does not become available.
func (s *site) failing(policy v1alpha2.FailurePolicy) func(*v1alpha2.ProviderSpec) {
	s.home.extra = s.unavailable()

	return func(spec *v1alpha2.ProviderSpec) {
		spec.Release = &v1alpha2.ReleaseSpec{
			Timeout: &metav1.Duration{Duration: 4 * time.Second}, Retries: ptr.To[int32](0), OnFailure: policy,
		}
	}
}
