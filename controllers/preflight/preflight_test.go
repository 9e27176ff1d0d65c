package preflight_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/problem"
)

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
			message: "required variables have no value: A, B; set spec.secretName to a Secret that has them",
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
type mapper struct {
	meta.RESTMapper
	// certManager is set if the cluster has cert-manager, which serves version v1 of Certificate.
	certManager bool
}

func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	switch {
	case kind.Group == "broken.example.com":
		return nil, errors.New("connection refused")
	case m.certManager && kind == schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"} &&
		(len(versions) == 0 || slices.Contains(versions, "v1")):
		return &meta.RESTMapping{}, nil
	default:
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
}

func TestRequiredAPIs(t *testing.T) {
	for name, c := range map[string]struct {
		kinds []string
		want  want
		// certManager is set if the cluster has cert-manager.
		certManager bool
	}{
		"none":   {},
		"served": {kinds: []string{"Certificate.v1.cert-manager.io"}, certManager: true},
		"another version of cert-manager's": {
			kinds: []string{"Certificate.v1.cert-manager.io", "Certificate.v1alpha2.cert-manager.io"},
			want: want{
				reason:  v1alpha2.WaitingForCRDsReason,
				waiting: true,
				message: "the cluster does not serve Certificate.v1alpha2.cert-manager.io, which the provider needs; install a " +
					"version of cert-manager that serves this, or choose another version of the provider",
			},
			certManager: true,
		},
		"cert-manager's": {
			kinds: []string{"Issuer.v1.cert-manager.io", "Order.v1.acme.cert-manager.io"},
			want: want{
				reason:  v1alpha2.CertManagerMissingReason,
				waiting: true,
				message: "the cluster does not serve Issuer.v1.cert-manager.io, Order.v1.acme.cert-manager.io, which the " +
					"provider needs; install cert-manager",
			},
		},
		"another project's": {
			kinds: []string{"Bundle.v1alpha1.trust.cert-manager.io", "ServiceMonitor.v1.monitoring.coreos.com"},
			want: want{
				reason:  v1alpha2.WaitingForCRDsReason,
				waiting: true,
				message: "the cluster does not serve Bundle.v1alpha1.trust.cert-manager.io, " +
					"ServiceMonitor.v1.monitoring.coreos.com, which the provider needs; install what serves " +
					"Bundle.v1alpha1.trust.cert-manager.io, ServiceMonitor.v1.monitoring.coreos.com, or remove its objects " +
					"with spec.patches",
			},
		},
		"both": {
			kinds: []string{"Issuer.v1.cert-manager.io", "Widget.v1.example.com"},
			want: want{
				reason:  v1alpha2.CertManagerMissingReason,
				waiting: true,
				message: "the cluster does not serve Issuer.v1.cert-manager.io, Widget.v1.example.com, which the provider " +
					"needs; install cert-manager; install what serves Widget.v1.example.com, or remove its objects with " +
					"spec.patches",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checker(t).RequiredAPIs(mapper{certManager: c.certManager}, c.kinds)
			expect(t, err, c.want)
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
			_, err := checker(t).RequiredAPIs(mapper{}, []string{c.kind})
			g.Expect(err).To(MatchError(c.message))
			g.Expect(problem.Of(err)).To(BeNil())
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
		_, err := c.Installation(t.Context(), input)
		failed := problem.Of(err)
		g.Expect(failed).NotTo(BeNil())

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

	_, err := c.Installation(t.Context(), input)
	g.Expect(err).NotTo(HaveOccurred(), "core's health is a check of its own")
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
		"identity":         c.Identity(t.Context(), aws, nothingRecorded),
		"core ready":       c.CoreReady(t.Context(), aws),
		"contract":         c.Contract(t.Context(), aws, "v1beta1"),
		"contract of core": c.Contract(t.Context(), provider(core, "cluster-api"), "v1beta1"),
		"unpause":          c.Unpause(t.Context(), unpausing, "v1beta1"),
	} {
		g.Expect(err).To(MatchError(ContainSubstring("no cache")), name)
	}
}
