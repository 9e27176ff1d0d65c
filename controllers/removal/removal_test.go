package removal

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
)

const (
	core           = v1alpha2.CoreProviderType
	infrastructure = v1alpha2.ProviderType("InfrastructureProvider")
	bootstrap      = v1alpha2.ProviderType("BootstrapProvider")
)

func provider(t v1alpha2.ProviderType, namespace, name string, installed bool) v1alpha2.Provider {
	p := t.New()
	p.SetNamespace(namespace)
	p.SetName(name)
	p.SetUID(types.UID(string(t) + namespace + name))

	if installed {
		p.GetStatus().Release = &v1alpha2.ReleaseStatus{}
	}

	return p
}

// cacheOf returns a client that knows the providers, and may list those of some types only.
func cacheOf(t *testing.T, permitted func(client.ObjectList) bool, providers ...v1alpha2.Provider) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, p := range providers {
		builder.WithObjects(p)
	}

	list := func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if !permitted(list) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "providers"}, "", errors.New("no"))
		}

		return c.List(ctx, list, opts...)
	}

	return builder.WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
}

func everything(client.ObjectList) bool { return true }

func TestCheckOthers(t *testing.T) {
	remote := provider(infrastructure, "tenant", "remote", true)
	remote.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}

	deleted := provider(infrastructure, "tenant", "aws", true)
	deleted.SetFinalizers([]string{v1alpha2.Finalizer})
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})

	lost := provider(infrastructure, "tenant", "aws", false)
	lost.SetFinalizers([]string{v1alpha2.Finalizer})
	lost.GetStatus().ObservedGeneration = -1

	for name, c := range map[string]struct {
		other v1alpha2.Provider
		want  error
	}{
		"with an installed provider": {
			other: provider(infrastructure, "tenant", "aws", true),
			want:  blocked("core is removed last; delete first: InfrastructureProvider tenant/aws"),
		},
		"with an installed provider that is being deleted": {
			other: deleted,
			want:  awaiting("core is removed last, after InfrastructureProvider tenant/aws"),
		},
		"with one that may be installed, whose status was lost": {
			other: lost,
			want:  blocked("core is removed last; delete first: InfrastructureProvider tenant/aws"),
		},
		"with a provider of another cluster": {other: remote},
		"with one that is not installed":     {other: provider(infrastructure, "tenant", "aws", false)},
		"with a second core":                 {other: provider(core, "tenant", "cluster-api", true)},
	} {
		t.Run(name, func(t *testing.T) {
			removed := provider(core, "system", "cluster-api", true)
			r := &Removal{
				Cache: cacheOf(t, everything, removed, c.other), Provider: removed, Target: &clusters.Target{},
			}

			err := r.CheckOthers(t.Context())
			if c.want == nil {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}

			NewWithT(t).Expect(err).To(Equal(c.want))
		})
	}
}

func TestVisibleNames(t *testing.T) {
	neighbor := provider(bootstrap, "system", "kubeadm", true)
	aws := provider(infrastructure, "tenant", "aws", true)
	rke2 := provider(bootstrap, "tenant", "rke2", true)
	onlyInfrastructure := func(list client.ObjectList) bool {
		_, ok := list.(*v1alpha2.InfrastructureProviderList)
		return ok
	}

	for name, c := range map[string]struct {
		account   string
		providers []v1alpha2.Provider
		want      string
	}{
		"all, for the operator": {
			"", []v1alpha2.Provider{aws, rke2}, "BootstrapProvider tenant/rke2, InfrastructureProvider tenant/aws",
		},
		"those that the account may list, and those of its namespace": {
			"tim", []v1alpha2.Provider{neighbor, aws, rke2},
			"BootstrapProvider system/kubeadm, InfrastructureProvider tenant/aws and 1 provider that tim must not list",
		},
		"none": {
			"tim", []v1alpha2.Provider{rke2, provider(bootstrap, "tenant", "talos", true)},
			"2 providers that tim must not list",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Removal{
				Provider: provider(core, "system", "cluster-api", true),
				Target:   &clusters.Target{Account: c.account, Client: cacheOf(t, onlyInfrastructure)},
			}

			NewWithT(t).Expect(r.visibleNames(t.Context(), c.providers)).To(Equal(c.want))
		})
	}
}

func TestExplain(t *testing.T) {
	g := NewWithT(t)
	r := &Removal{release: types.NamespacedName{Namespace: "tenant", Name: "infrastructure-aws"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("tim may not"))

	for _, err := range []error{
		fmt.Errorf("list the history: %w", forbidden),
		fmt.Errorf("list the history: %w; lift the policy that forbids it", forbidden),
	} {
		g.Expect(r.Explain(err)).To(Equal(blocked("list the history: %s; grant that permission, or remove the finalizer "+
			"capstan.dev/provider from this resource, which leaves release tenant/infrastructure-aws behind", forbidden)))
	}

	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, "x", errors.New(
		"ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: it must stay"))
	g.Expect(r.Explain(denied)).To(Equal(
		blocked("%s; change the policy or webhook that denies it, or what it checks", denied)))

	other := errors.New("connection refused")
	g.Expect(r.Explain(other)).To(BeIdenticalTo(other))

	last := blocked("core is removed last")
	g.Expect(r.Explain(last)).To(BeIdenticalTo(last))
}
