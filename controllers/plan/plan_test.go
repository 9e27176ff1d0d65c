package plan

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/fetch"
)

// samples are small providers in clusterctl's local-repository layout.
const samples = "../../test/data/providers"

const operatorNamespace = "capstan-system"

var errWrite = errors.New("a planner must not write")

// readOnlyClient returns a client whose writes fail.
func readOnlyClient(objects ...client.Object) client.Client {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	_ = v1alpha2.AddToScheme(scheme)

	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errWrite },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return errWrite },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errWrite
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return errWrite },
	}).Build()
}

func newPlanner(c client.Client) *Planner {
	registry, err := fetch.NewRegistry("", nil, nil)
	if err != nil {
		panic(err)
	}

	readers := &access.Readers{APIReader: c}

	return &Planner{
		Cache:   c,
		Readers: readers,
		Sources: &fetch.Resolver{
			Readers:  readers,
			Catalog:  fetch.CatalogFile(fetch.DefaultConfigFile),
			Registry: registry,
		},
		Charts: NewCharts(&store.Store{Client: c, Namespace: operatorNamespace}, c, nil),
	}
}

// aws is a provider that needs the variable AWS_B64ENCODED_CREDENTIALS, in a Secret.
func aws(version string) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}}
	p.Spec.Version = version
	p.Spec.SecretName = "variables"
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: samples}

	return p
}

func variables(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "variables"}, Data: data}
}

func TestPlan(t *testing.T) {
	g := NewWithT(t)
	c := readOnlyClient(variables(map[string][]byte{"AWS_B64ENCODED_CREDENTIALS": []byte("secret")}))
	planner := newPlanner(c)
	planner.ImageRegistry = "mirror.example.com"

	planned, err := planner.Plan(t.Context(), Request{Provider: aws("v1.0.0"), Scope: c})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(planned.Version).To(Equal("v1.0.0"))
	g.Expect(planned.MissingVariables).To(BeEmpty())
	g.Expect(planned.Release.Release.Name).To(Equal("infrastructure-aws"))
	g.Expect(planned.Release.Release.Namespace).To(Equal("capa-system"))
	g.Expect(planned.Release.ChartDigest).To(Equal(planned.Chart.Digest))
	g.Expect(planned.Release.Values).To(HaveKeyWithValue("imageRegistry", "mirror.example.com"))
	g.Expect(planned.Release.Values).To(HaveKeyWithValue("variables",
		HaveKeyWithValue("AWS_B64ENCODED_CREDENTIALS", "secret")))
}

func TestPlanReportsMissingVariables(t *testing.T) {
	g := NewWithT(t)
	c := readOnlyClient(variables(nil))

	planned, err := newPlanner(c).Plan(t.Context(), Request{Provider: aws("v1.0.0"), Scope: c})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(planned.MissingVariables).To(ConsistOf("AWS_B64ENCODED_CREDENTIALS"))
}

func TestPlanResolvesRanges(t *testing.T) {
	g := NewWithT(t)
	c := readOnlyClient()
	docker := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
	docker.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: samples}

	for version, expected := range map[string]string{"": "v1.1.0", "~1.0": "v1.0.0", "v1.0.0": "v1.0.0"} {
		docker.Spec.Version = version
		planned, err := newPlanner(c).Plan(t.Context(), Request{Provider: docker, Scope: c})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(planned.Version).To(Equal(expected), "spec.version %q", version)
	}
}

func TestPlanKeepsWhatItFoundOutBeforeAnError(t *testing.T) {
	g := NewWithT(t)
	c := readOnlyClient()

	planned, err := newPlanner(c).Plan(t.Context(), Request{Provider: aws("v1.0.0"), Scope: c})
	g.Expect(err).To(HaveField("Reason", v1alpha2.SecretNotFoundReason))
	g.Expect(planned.Chart.Version()).To(Equal("v1.0.0"))

	planned, err = newPlanner(c).Plan(t.Context(), Request{Provider: aws("v9.9.9"), Scope: c})
	g.Expect(source.IsNotFound(err)).To(BeTrue(), "%v", err)
	g.Expect(planned.Chart).To(BeNil())
}
