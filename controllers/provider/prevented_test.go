package provider

import (
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// surroundings are a provider whose upgrade is prevented, and what exists beside it.
type surroundings struct {
	provider                                    *v1alpha2.InfrastructureProvider
	revision                                    int
	variables, credentials, more, source, other *metav1.PartialObjectMetadata
	crd                                         *apiextensionsv1.CustomResourceDefinition
	core                                        *v1alpha2.CoreProvider
}

// input returns the metadata of a ConfigMap or Secret.
func input(kind, namespace, name string, labels map[string]string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: labels, ResourceVersion: "1",
	}}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))

	return m
}

func newSurroundings() *surroundings {
	aws := map[string]string{"provider": "aws"}
	s := &surroundings{
		provider: &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{
			Namespace: "capa-system", Name: "aws", UID: "aws", Generation: 2,
		}},
		revision:    1,
		variables:   input("Secret", "shared", "variables", nil),
		credentials: input("Secret", "capa-system", "credentials", nil),
		more:        input("ConfigMap", "capa-system", "more", nil),
		source:      input("ConfigMap", "capa-system", "v1.2.0", aws),
		other:       input("Secret", "capa-system", "other", nil),
		crd: &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: "awsclusters.example.com", ResourceVersion: "1",
			Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-aws"},
		}},
		core: &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{
			Namespace: "capi-system", Name: "cluster-api", UID: "core",
		}},
	}

	s.provider.Spec.ConfigSecret = &v1alpha2.SecretReference{Namespace: "shared", Name: "variables"}
	s.provider.Spec.AdditionalManifests = &v1alpha2.ConfigMapReference{Name: "more"}
	s.provider.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
		Selector: &metav1.LabelSelector{MatchLabels: aws}, SecretRef: &v1alpha2.LocalSecretReference{Name: "credentials"},
	}
	s.core.Status.InstalledVersion, s.core.Status.Contract = new("v1.12.0"), new("v1beta1")

	return s
}

// cluster returns a client for the provider, core and the CRD.
func (s *surroundings) cluster(t *testing.T) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(crds.AddToScheme(scheme)).To(Succeed())

	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.provider, s.core, s.crd).
		WithStatusSubresource(s.core).Build()
}

// basis returns what the checks of an upgrade depend on.
func (s *surroundings) basis(t *testing.T) basis {
	t.Helper()

	g := NewWithT(t)
	cluster := s.cluster(t)
	metadata := metadatafake.NewTestScheme()
	g.Expect(metav1.AddMetaToScheme(metadata)).To(Succeed())

	r := newTestRun(revision(s.revision, v1alpha2.RevisionDeployed, wanted))
	r.provider = s.provider
	r.Preflight = &preflight.Checker{Client: cluster}
	r.target = &clusters.Target{CRDs: crds.NewApplier(crds.Clients{Client: cluster})}
	r.Watches = namespaces.New(metadatafake.NewSimpleMetadataClient(
		metadata, s.variables, s.credentials, s.more, s.source, s.other), nil)

	go func() { _ = r.Watches.Start(t.Context()) }()

	r.Watches.Follow("test", "shared", "capa-system")
	g.Eventually(r.findInputs).Should(HaveLen(4))

	found, err := r.findBasis(t.Context())
	g.Expect(err).NotTo(HaveOccurred())

	return found
}

// TestPreventedUpgradeIsTriedAgain checks after which changes an upgrade is tried again that a check has prevented, and
// which of them need a new plan.
func TestPreventedUpgradeIsTriedAgain(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	before := prevented{
		Prevented: offers.Prevented{Version: "v1.2.0", Until: at.Add(offers.PreventedInterval)},
		basis:     newSurroundings().basis(t),
	}
	edit := func(m *metav1.PartialObjectMetadata) { m.ResourceVersion = "2" }

	for name, c := range map[string]struct {
		change       func(*surroundings)
		again, plans bool
	}{
		"nothing":  {func(*surroundings) {}, false, false},
		"the spec": {func(s *surroundings) { s.provider.Generation++ }, true, true},
		"a request": {func(s *surroundings) {
			s.provider.Annotations = map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"}
		}, true, true},
		"what the user allows": {func(s *surroundings) {
			s.provider.Annotations = map[string]string{v1alpha2.AllowUnsafeCRDAnnotation: "v1.2.0"}
		}, true, true},
		"a label": {
			func(s *surroundings) { s.provider.Labels = map[string]string{"team": "a"} }, false, false,
		},
		"the status":                 {func(s *surroundings) { s.provider.Status.DesiredVersion = "v1.1.0" }, false, false},
		"what is installed":          {func(s *surroundings) { s.revision++ }, true, false},
		"variables":                  {func(s *surroundings) { edit(s.variables) }, true, true},
		"credentials for a source":   {func(s *surroundings) { edit(s.credentials) }, true, true},
		"additional manifests":       {func(s *surroundings) { edit(s.more) }, true, true},
		"a version of a ConfigMap":   {func(s *surroundings) { edit(s.source) }, true, true},
		"a Secret of something":      {func(s *surroundings) { edit(s.other) }, false, false},
		"a CRD of the provider":      {func(s *surroundings) { s.crd.ResourceVersion = "2" }, true, false},
		"the version of core":        {func(s *surroundings) { *s.core.Status.InstalledVersion = "v1.13.0" }, true, false},
		"the contract of core":       {func(s *surroundings) { *s.core.Status.Contract = "v1beta2" }, true, false},
		"the spec of core":           {func(s *surroundings) { s.core.Generation++ }, true, false},
		"what else core's status is": {func(s *surroundings) { s.core.Status.DesiredVersion = "v1.13.0" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSurroundings()
			c.change(s)

			now := s.basis(t)
			g.Expect(before.holds("v1.2.0", now, at)).To(Equal(!c.again))
			g.Expect(reflect.DeepEqual(before.basis.asked, now.asked)).To(Equal(!c.plans), "what is planned")
		})
	}

	t.Run("time", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(before.holds("v1.2.0", before.basis, before.Until.Add(-time.Second))).To(BeTrue())
		g.Expect(before.holds("v1.2.0", before.basis, before.Until)).To(BeFalse())
		g.Expect(before.holds("v1.2.1", before.basis, at)).To(BeFalse(), "a version that was published since")
		g.Expect(prevented{}.holds("v1.2.0", before.basis, at)).To(BeFalse(), "nothing was prevented")
	})
}
