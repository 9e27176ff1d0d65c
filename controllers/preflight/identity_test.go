package preflight_test

import (
	"testing"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestIdentity(t *testing.T) {
	refusedFor := func(namespace string) want {
		return want{
			reason:  v1alpha2.MoreThanOneProviderInstanceExistsReason,
			waiting: true,
			message: "InfrastructureProvider aws is already installed by the resource in namespace " + namespace +
				", and a cluster can have each provider only once; delete one of the two",
		}
	}
	recorded := func(p v1alpha2.Provider) bool { return p.GetNamespace() == "recorded" }

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
		"the younger one, while none is installed": {
			provider: provider(infrastructure, "aws", created(time.Minute)),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), created(time.Hour))},
		},
		"the installed one beside an older one": {
			provider: provider(infrastructure, "aws", created(time.Minute), installed),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), created(time.Hour))},
		},
		"the older one beside an installed one": {
			provider: provider(infrastructure, "aws", created(time.Hour)),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), created(time.Minute), installed)},
			want:     refusedFor("x"),
		},
		"the older one of two that are installed": {
			provider: provider(infrastructure, "aws", created(time.Hour), installed),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"), created(time.Minute), installed)},
		},
		"the younger one of two that are installed": {
			provider: provider(infrastructure, "aws", created(time.Minute), installed),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), created(time.Hour), installed)},
			want:     refusedFor("x"),
		},
		"of two that are installed and of the same age, the first by namespace": {
			provider: provider(infrastructure, "aws", installed),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), installed)},
		},
		"of two that are installed and of the same age, the second by namespace": {
			provider: provider(infrastructure, "aws", installed),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"), installed)},
			want:     refusedFor("a"),
		},
		"beside one that is being removed": {
			provider: provider(infrastructure, "aws", created(time.Hour)),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), installed, deleted)},
			want:     refusedFor("x"),
		},
		"beside one whose release is only in Helm's storage": {
			provider: provider(infrastructure, "aws", created(time.Hour)),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("recorded"))},
			want: want{
				reason: v1alpha2.MoreThanOneProviderInstanceExistsReason, waiting: true,
				message: refusedFor("recorded").message +
					"; if it is something else, set the annotation capstan.dev/install-beside: recorded on this resource",
			},
		},
		"beside one whose release is only in Helm's storage, which does not count": {
			provider: provider(infrastructure, "aws", created(time.Hour), beside("other, recorded")),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("recorded"))},
		},
		"beside an installed one, which always counts": {
			provider: provider(infrastructure, "aws", created(time.Hour), beside("x")),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("x"), installed)},
			want:     refusedFor("x"),
		},
		"the installed one beside one with a record in Helm's storage": {
			provider: provider(infrastructure, "aws", created(time.Minute), installed),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("recorded"), created(time.Hour))},
		},
		"another type of the same name": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(bootstrap, "aws", in("a"), installed)},
		},
		"another name of the same type": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "azure", in("a"), installed)},
		},
		"the same provider in another cluster": {
			provider: provider(infrastructure, "aws"),
			others:   []v1alpha2.Provider{provider(infrastructure, "aws", in("a"), remote("there"), installed)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, checker(t, append(c.others, c.provider)...).Identity(t.Context(), c.provider, recorded), c.want)
		})
	}

	t.Run("not in the cache yet", func(t *testing.T) {
		expect(t, checker(t).Identity(t.Context(), provider(infrastructure, "aws"), nothingRecorded), want{})
	})
}

func TestOperatorsNamespace(t *testing.T) {
	refused := want{
		reason: v1alpha2.AccessDeniedReason,
		message: "InfrastructureProvider aws is in namespace system, which is the operator's, so its publisher could use " +
			"the operator's ServiceAccount and Secrets; create the resource in another namespace, or set the annotation " +
			"capstan.dev/install-beside: system on it to accept that",
	}

	for name, c := range map[string]struct {
		operators string
		provider  v1alpha2.Provider
		want      want
	}{
		"of the operator":              {"system", provider(infrastructure, "aws"), refused},
		"accepted for another one":     {"system", provider(infrastructure, "aws", beside("other")), refused},
		"accepted":                     {"system", provider(infrastructure, "aws", beside("other, system")), want{}},
		"where it is installed":        {"system", provider(infrastructure, "aws", installed), want{}},
		"of an operator that is alone": {"operator", provider(infrastructure, "aws"), want{}},
		"of an unknown operator":       {"", provider(infrastructure, "aws"), want{}},
		"of another cluster":           {"system", provider(infrastructure, "aws", remote("there")), want{}},
	} {
		t.Run(name, func(t *testing.T) {
			checker := checker(t, c.provider)
			checker.Namespace = c.operators

			expect(t, checker.Identity(t.Context(), c.provider, nothingRecorded), c.want)
		})
	}

	t.Run("of the same cluster, by a kubeconfig", func(t *testing.T) {
		p := provider(infrastructure, "aws", remote("here"))
		checker := checker(t, p)
		checker.Namespace, checker.Cluster = "system", func(v1alpha2.Provider) string { return "local" }

		expect(t, checker.Identity(t.Context(), p, nothingRecorded), refused)
	})
}

func nothingRecorded(v1alpha2.Provider) bool { return false }

// beside returns an option of a provider that is installed beside what looks like it in namespaces.
func beside(namespaces string) func(v1alpha2.Provider) {
	return func(p v1alpha2.Provider) {
		p.SetAnnotations(map[string]string{v1alpha2.InstallBesideAnnotation: namespaces})
	}
}
