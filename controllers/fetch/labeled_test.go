package fetch

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/controllers/access"
)

// version returns a ConfigMap with the labels of a provider's version, as cluster-api-operator writes them.
func version(namespace, kind, name, version string) *corev1.ConfigMap {
	labels := map[string]string{
		"provider.cluster.x-k8s.io/type": kind,
		"provider.cluster.x-k8s.io/name": name,
	}
	if version != "" {
		labels["provider.cluster.x-k8s.io/version"] = version
	}

	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kind + "-" + name + "-" + version, Labels: labels},
		Data:       map[string]string{"metadata": "releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]"},
	}
}

// forbidding is a reader of an account that may not list ConfigMaps.
type forbidding struct{ client.Reader }

func (forbidding) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no"))
}

func TestLabeledConfigMaps(t *testing.T) {
	const catalog = "https://github.com/kubernetes-sigs/cluster-api/releases/download/v1.0.0/" +
		"infrastructure-components-development.yaml"

	own := version("default", "infrastructure", "docker", "v1.0.0")
	secret := &corev1.Secret{ObjectMeta: *own.ObjectMeta.DeepCopy()}
	exact := v1alpha2.ProviderSpec{Version: "v1.0.0"}

	for name, test := range map[string]struct {
		objects   []client.Object
		name      string
		spec      v1alpha2.ProviderSpec
		off       bool
		forbidden bool
		// want is the ID of the version in a ConfigMap, or its origin.
		want string
	}{
		"the version is used": {objects: []client.Object{own}, spec: exact, want: "ConfigMap " + own.Name},
		"the newest is used":  {objects: []client.Object{own}, want: "ConfigMap " + own.Name},
		"another version is in the catalog": {
			objects: []client.Object{version("default", "infrastructure", "docker", "v1.1.0")}, spec: exact, want: catalog,
		},
		"of a provider that is not in the catalog": {
			objects: []client.Object{version("default", "infrastructure", "ours", "v1.0.0")}, name: "ours", spec: exact,
			want: "ConfigMap infrastructure-ours-v1.0.0",
		},
		"only if the operator's flag is set": {objects: []client.Object{own}, spec: exact, off: true, want: catalog},
		"not in another namespace": {
			objects: []client.Object{version("other", "infrastructure", "docker", "v1.0.0")}, spec: exact, want: catalog,
		},
		"not of another type": {
			objects: []client.Object{version("default", "bootstrap", "docker", "v1.0.0")}, spec: exact, want: catalog,
		},
		"not without a version": {
			objects: []client.Object{version("default", "infrastructure", "docker", "")}, spec: exact, want: catalog,
		},
		"no Secrets": {objects: []client.Object{secret}, spec: exact, want: catalog},
		"not with more permissions than the account's": {
			objects: []client.Object{own}, forbidden: true, want: catalog,
			spec: v1alpha2.ProviderSpec{Version: "v1.0.0", ServiceAccountName: "installer"},
		},
		"not if the resource names a source": {
			objects: []client.Object{own}, want: "https://mirror/x/v1.0.0/infrastructure-components.yaml",
			spec: v1alpha2.ProviderSpec{
				Version: "v1.0.0", FetchConfig: &v1alpha2.FetchConfiguration{HTTP: "https://mirror/x"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := newReader(nil, test.objects...)
			readers := &access.Readers{APIReader: reader}

			if test.forbidden {
				readers.Impersonate = func(string) (client.Reader, error) { return forbidding{reader}, nil }
			}

			r := &Resolver{
				Readers: readers, Registry: &Registry{}, Config: &ConfigFile{Path: DefaultConfigFile},
				LabeledConfigMaps: !test.off,
			}

			p := provider("docker", test.spec)
			if test.name != "" {
				p.SetName(test.name)
			}

			_, found, err := r.Resolve(t.Context(), p, source.Request{Version: test.spec.Version})
			g.Expect(err).NotTo(HaveOccurred())

			if found.Origin != "" {
				g.Expect(found.Origin).To(Equal(test.want))
			} else {
				g.Expect(found.ID).To(Equal(test.want))
			}
		})
	}

	t.Run("two of one version are an error", func(t *testing.T) {
		other := own.DeepCopy()
		other.Name = "copy"
		r := &Resolver{Readers: &access.Readers{APIReader: newReader(nil, own, other)}, LabeledConfigMaps: true}

		_, _, err := r.Resolve(t.Context(), provider("docker", exact), source.Request{Version: "v1.0.0"})
		NewWithT(t).Expect(err).To(BeAssignableToTypeOf(&bundle.InvalidError{}))
	})
}

func TestHint(t *testing.T) {
	own := version("default", "infrastructure", "ours", "v1.0.0")
	unknown := &UnknownProviderError{Type: v1alpha2.InfrastructureProviderType, Name: "ours"}
	resolver := func(objects ...client.Object) *Resolver {
		return &Resolver{Readers: &access.Readers{APIReader: newReader(nil, objects...)}}
	}
	ours := provider("ours", v1alpha2.ProviderSpec{})

	t.Run("names the ConfigMap and the field", func(t *testing.T) {
		g := NewWithT(t)
		err := resolver(own).Hint(t.Context(), ours, unknown)
		g.Expect(errors.As(err, new(*UnknownProviderError))).To(BeTrue())
		g.Expect(err).To(MatchError(unknown.Error() + "; ConfigMap infrastructure-ours-v1.0.0 in the namespace " +
			"holds v1.0.0 of this provider: to use it, set spec.fetchConfig.selector.matchLabels to " +
			"{provider.cluster.x-k8s.io/type: infrastructure, provider.cluster.x-k8s.io/name: ours}"))
	})

	for name, unchanged := range map[string]func() error{
		"no ConfigMap": func() error { return resolver().Hint(t.Context(), ours, unknown) },
		"another source": func() error {
			p := provider("ours", fetching(v1alpha2.FetchConfiguration{HTTP: "https://mirror/x"}))
			return resolver(own).Hint(t.Context(), p, unknown)
		},
	} {
		t.Run(name+" leaves the error as it is", func(t *testing.T) {
			NewWithT(t).Expect(unchanged()).To(BeIdenticalTo(unknown))
		})
	}

	t.Run("errors of other causes are left as they are", func(t *testing.T) {
		other := errors.New("the content is invalid")
		NewWithT(t).Expect(resolver(own).Hint(t.Context(), ours, other)).To(BeIdenticalTo(other))
	})
}

// TestListReadsMetadataOnce checks that what was fetched is not read again for its contracts, by the same user and as
// long as it does not change.
func TestListReadsMetadataOnce(t *testing.T) {
	g := NewWithT(t)
	cm := version("default", "infrastructure", "docker", "v1.0.0")

	const metadata = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n" +
		"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]"

	cm.Data["components"], cm.Data["metadata"] = "{}", metadata
	cm.UID = "uid"
	reads := 0
	reader := fake.NewClientBuilder().WithObjects(cm).WithInterceptorFuncs(interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption,
	) error {
		reads++
		return c.Get(ctx, key, o, options...)
	}}).Build()

	r := &Resolver{
		Readers: &access.Readers{
			APIReader: reader, Impersonate: func(string) (client.Reader, error) { return reader, nil },
		},
		Registry: &Registry{}, Config: &ConfigFile{Path: DefaultConfigFile},
		LabeledConfigMaps: true, KnownMetadata: source.NewKnownMetadata(),
	}

	// list lists the versions and their contracts, and returns how many objects it has read.
	list := func(account, contract string) int {
		t.Helper()

		before := reads

		_, metadata, err := r.List(t.Context(), provider("docker", v1alpha2.ProviderSpec{ServiceAccountName: account}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(metadata.Contract("v1.0.0")).To(Equal(contract))

		return reads - before
	}

	from, found, err := r.Resolve(t.Context(), provider("docker", v1alpha2.ProviderSpec{}), source.Request{})
	g.Expect(err).NotTo(HaveOccurred())

	_, err = from.Fetch(t.Context(), found)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(list("", "v1beta2")).To(Equal(0))
	g.Expect(list("installer", "v1beta2")).To(Equal(1), "the account may not be allowed to read it")
	g.Expect(list("installer", "v1beta2")).To(Equal(0))

	g.Expect(reader.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
	cm.Data["metadata"] = strings.ReplaceAll(metadata, "v1beta2", "v1beta1")
	g.Expect(reader.Update(t.Context(), cm)).To(Succeed())
	g.Expect(list("", "v1beta1")).To(Equal(1))

	cm.Data["metadata"] += strings.Repeat(" ", 1<<20)
	g.Expect(reader.Update(t.Context(), cm)).To(Succeed())
	g.Expect(list("", "v1beta1")).To(Equal(1))
	g.Expect(list("", "v1beta1")).To(Equal(1), "too long to keep")
}
