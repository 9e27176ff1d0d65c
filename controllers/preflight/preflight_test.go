package preflight_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

const (
	core           = v1alpha2.CoreProviderType
	infrastructure = v1alpha2.ProviderType("InfrastructureProvider")
	bootstrap      = v1alpha2.ProviderType("BootstrapProvider")
)

// option changes a provider.
type option func(v1alpha2.Provider)

// provider returns a provider in the namespace "system".
func provider(t v1alpha2.ProviderType, name string, options ...option) v1alpha2.Provider {
	p := t.New()
	p.SetNamespace("system")
	p.SetName(name)

	for _, o := range options {
		o(p)
	}

	p.SetUID(types.UID(string(t) + p.GetNamespace() + name))

	return p
}

func in(namespace string) option {
	return func(p v1alpha2.Provider) { p.SetNamespace(namespace) }
}

func remote(secret string) option {
	return func(p v1alpha2.Provider) {
		p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
		p.GetSpec().KubeConfig.SecretRef.Name = secret
	}
}

func created(age time.Duration) option {
	return func(p v1alpha2.Provider) { p.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-age))) }
}

func contract(contract string) option {
	return func(p v1alpha2.Provider) { p.GetStatus().Contract = &contract }
}

func condition(name string) option {
	return func(p v1alpha2.Provider) { conditions.MarkTrue(p, name, "Test", "") }
}

// pausing asks for a pause, and paused is what it results in.
func pausing(p v1alpha2.Provider) { p.GetSpec().Paused = true }

func paused(p v1alpha2.Provider) {
	pausing(p)
	condition(v1alpha2.PausedCondition)(p)
}

func ready(p v1alpha2.Provider) { condition(v1alpha2.ReadyCondition)(p) }

// checker returns a checker that knows the providers.
func checker(t *testing.T, providers ...v1alpha2.Provider) *preflight.Checker {
	t.Helper()

	return &preflight.Checker{Client: builder(t, providers...).Build()}
}

func builder(t *testing.T, providers ...v1alpha2.Provider) *fake.ClientBuilder {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, kind := range v1alpha2.ProviderTypes() {
		b.WithIndex(kind.New(), preflight.NameField, func(o client.Object) []string { return []string{o.GetName()} })
	}

	for _, p := range providers {
		b.WithObjects(p)
	}

	return b
}

// want is the expected result of a check; the zero value is success.
type want struct {
	reason    string
	message   string
	waiting   bool
	allowCRDs bool
}

// expect compares the result of a check.
func expect(t *testing.T, err error, w want) {
	t.Helper()

	g := NewWithT(t)
	if w == (want{}) {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}

	var failed *preflight.Error
	g.Expect(errors.As(err, &failed)).To(BeTrue(), "%v", err)
	g.Expect(failed).To(Equal(&preflight.Error{
		Reason:    w.reason,
		Message:   w.message,
		Waiting:   w.waiting,
		AllowCRDs: w.allowCRDs,
	}))
}

func TestIdentity(t *testing.T) {
	const second = v1alpha2.MoreThanOneProviderInstanceExistsReason

	for name, c := range map[string]struct {
		provider v1alpha2.Provider
		others   []v1alpha2.Provider
		want     want
	}{
		"core": {provider: provider(core, "cluster-api")},
		"core with another name": {
			provider: provider(core, "capi"),
			want: want{
				reason:  v1alpha2.IncorrectCoreProviderNameReason,
				message: "the CoreProvider must be named cluster-api, not capi; create it with that name and delete this one",
			},
		},
		"another provider may have any name": {provider: provider(infrastructure, "capi")},
		"the older one": {
			provider: provider(infrastructure, "aws", created(time.Hour)),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"), created(time.Minute))},
		},
		"the younger one": {
			provider: provider(infrastructure, "aws", created(time.Minute)),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), created(time.Hour))},
			want: want{
				reason:  second,
				waiting: true,
				message: "InfrastructureProvider aws already exists in namespace x, and a cluster can have each provider " +
					"only once; delete one of the two",
			},
		},
		"of the same age, the first by namespace": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"))},
		},
		"of the same age, not the first by namespace": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"))},
			want: want{
				reason:  second,
				waiting: true,
				message: "InfrastructureProvider aws already exists in namespace a, and a cluster can have each provider " +
					"only once; delete one of the two",
			},
		},
		"another type of the same name": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(bootstrap, "aws", in("a"))},
		},
		"another name of the same type": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "azure", in("a"))},
		},
		"the same provider in another cluster": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"), remote("there"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checker(t, append(c.others, c.provider)...).Identity(t.Context(), c.provider), c.want)
		})
	}

	t.Run("not in the cache yet", func(t *testing.T) {
		expect(t, checker(t).Identity(t.Context(), provider(infrastructure, "aws")), want{})
	})
}

func TestCoreReady(t *testing.T) {
	const waiting = v1alpha2.WaitingForCoreProviderReadyReason

	noCore := want{
		reason:  waiting,
		waiting: true,
		message: "waiting for the CoreProvider cluster-api, which exists in no namespace; create it",
	}

	for name, c := range map[string]struct {
		core     v1alpha2.Provider
		provider v1alpha2.Provider
		want     want
	}{
		"core does not wait for itself": {provider: provider(core, "cluster-api")},
		"no core":                       {provider: provider(infrastructure, "aws"), want: noCore},
		"a ready core":                  {provider(core, "cluster-api", ready), provider(infrastructure, "aws"), want{}},
		"a core in another namespace": {
			provider(core, "cluster-api", in("a"), ready), provider(infrastructure, "aws"), want{},
		},
		"a core that is not installed": {
			provider(core, "cluster-api"), provider(infrastructure, "aws"), want{
				reason:  waiting,
				waiting: true,
				message: "waiting for CoreProvider system/cluster-api to become ready",
			},
		},
		"a core that is installed but not ready": {
			provider(core, "cluster-api", condition(v1alpha2.ProviderInstalledCondition)),
			provider(infrastructure, "aws"),
			want{
				reason:    waiting,
				waiting:   true,
				allowCRDs: true,
				message:   "waiting for CoreProvider system/cluster-api to become ready",
			},
		},
		"a core with another name": {provider(core, "capi", ready), provider(infrastructure, "aws"), noCore},
		"a core of another cluster": {
			provider(core, "cluster-api", ready), provider(infrastructure, "aws", remote("there")), noCore,
		},
		"a core of the same remote cluster": {
			provider(core, "cluster-api", ready, remote("there")),
			provider(infrastructure, "aws", remote("there")),
			want{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var known []v1alpha2.Provider
			if c.core != nil {
				known = append(known, c.core)
			}

			expect(t, checker(t, known...).CoreReady(t.Context(), c.provider), c.want)
		})
	}
}

func TestVariables(t *testing.T) {
	withSecret := provider(infrastructure, "aws")
	withSecret.GetSpec().SecretName = "credentials"

	for name, c := range map[string]struct {
		provider v1alpha2.Provider
		missing  []string
		want     want
	}{
		"none missing": {provider: provider(infrastructure, "aws")},
		"missing, without a Secret": {provider(infrastructure, "aws"), []string{"A", "B"}, want{
			reason:  v1alpha2.MissingVariablesReason,
			message: "required variables have no value: A, B; set spec.configSecret to a Secret that has them",
		}},
		"missing in the Secret": {withSecret, []string{"A"}, want{
			reason:  v1alpha2.MissingVariablesReason,
			message: "required variables have no value: A; add them to Secret system/credentials",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checker(t).Variables(c.provider, c.missing), c.want)
		})
	}
}

// mapper knows cert-manager's kinds but no Issuer, and cannot look up those of broken.example.com.
type mapper struct{ meta.RESTMapper }

func (mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	switch {
	case kind.Group == "broken.example.com":
		return nil, errors.New("connection refused")
	case kind == schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}:
		return &meta.RESTMapping{}, nil
	default:
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
}

func TestRequiredAPIs(t *testing.T) {
	for name, c := range map[string]struct {
		kinds []string
		want  want
	}{
		"none":   {},
		"served": {kinds: []string{"Certificate.v1.cert-manager.io"}},
		"missing": {
			[]string{"Certificate.v1.cert-manager.io", "Issuer.v1.cert-manager.io", "Widget.v1.example.com"},
			want{
				reason: v1alpha2.CertManagerMissingReason,
				message: "the cluster does not serve Issuer.v1.cert-manager.io, Widget.v1.example.com, which the provider " +
					"needs; install cert-manager",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checker(t).RequiredAPIs(mapper{}, c.kinds), c.want)
		})
	}

	for name, c := range map[string]struct{ kind, message string }{
		"not a kind": {
			"Certificate", `the chart requires the kind "Certificate", which does not have the form Kind.version.group`,
		},
		"discovery fails": {
			"Widget.v1.broken.example.com", "look up the API of Widget.v1.broken.example.com: connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := checker(t).RequiredAPIs(mapper{}, []string{c.kind})
			g.Expect(err).To(MatchError(c.message))
			g.Expect(err).NotTo(BeAssignableToTypeOf(&preflight.Error{}))
		})
	}
}

// TestInstallation checks which of several problems is reported.
func TestInstallation(t *testing.T) {
	g := NewWithT(t)
	aws := provider(infrastructure, "aws")
	aws.GetSpec().Paused = false
	condition(v1alpha2.PausedCondition)(aws)

	oldCore := provider(core, "cluster-api", contract("v1beta1"))
	input := preflight.Input{
		Provider:         aws,
		Mapper:           mapper{},
		Contract:         "v1beta2",
		RequiredKinds:    []string{"Issuer.v1.cert-manager.io"},
		MissingVariables: []string{"A"},
	}
	c := checker(t, oldCore, aws, provider(bootstrap, "kubeadm", contract("v1beta2")))

	reason := func() string {
		var failed *preflight.Error
		g.Expect(errors.As(c.Installation(t.Context(), input), &failed)).To(BeTrue())

		return failed.Reason + ": " + failed.Message
	}

	g.Expect(reason()).To(ContainSubstring("CAPIVersionIncompatibility: this version has"))

	input.Contract = "v1beta1"

	g.Expect(reason()).To(ContainSubstring("CAPIVersionIncompatibility: this provider stays paused"))

	c = checker(t, oldCore, aws)

	g.Expect(reason()).To(HavePrefix(v1alpha2.MissingVariablesReason))

	input.MissingVariables = nil

	g.Expect(reason()).To(HavePrefix(v1alpha2.CertManagerMissingReason))

	input.RequiredKinds = nil

	g.Expect(reason()).To(HavePrefix(v1alpha2.WaitingForCoreProviderReadyReason))

	c = checker(t, provider(core, "cluster-api", contract("v1beta1"), ready), aws)
	g.Expect(c.Installation(t.Context(), input)).To(Succeed())
}

func TestUnreadableCache(t *testing.T) {
	g := NewWithT(t)
	c := &preflight.Checker{Client: builder(t).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no cache")
		},
	}).Build()}
	aws := provider(infrastructure, "aws")
	unpausing := provider(core, "cluster-api", condition(v1alpha2.PausedCondition))

	for name, err := range map[string]error{
		"identity":         c.Identity(t.Context(), aws),
		"core ready":       c.CoreReady(t.Context(), aws),
		"contract":         c.Contract(t.Context(), aws, "v1beta1"),
		"contract of core": c.Contract(t.Context(), provider(core, "cluster-api"), "v1beta1"),
		"unpause":          c.Unpause(t.Context(), unpausing, "v1beta1"),
	} {
		g.Expect(err).To(MatchError("no cache"), name)
	}
}
