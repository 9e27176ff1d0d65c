package fetch

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/controllers/access"
)

// version returns a ConfigMap with a version of a provider, as cluster-api-operator writes it.
func version() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "infrastructure-docker-v1.0.0",
			Labels: map[string]string{
				"provider.cluster.x-k8s.io/type": "infrastructure",
				"provider.cluster.x-k8s.io/name": "docker",
				v1alpha2.ConfigMapVersionLabel:   "v1.0.0",
			},
		},
		Data: map[string]string{"metadata": "releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]"},
	}
}

// selecting returns the spec of a resource that selects the ConfigMap.
func selecting(account string) v1alpha2.ProviderSpec {
	spec := fetching(v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"provider.cluster.x-k8s.io/name": "docker"},
	}})
	spec.ServiceAccountName = account

	return spec
}

// TestListReadsMetadataOnce checks that what was fetched is not read again for its contracts, by the same user and as
// long as it does not change.
func TestListReadsMetadataOnce(t *testing.T) {
	g := NewWithT(t)
	cm := version()

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
		KnownMetadata: source.NewKnownMetadata(),
	}

	// list lists the versions and their contracts, and returns how many objects it has read.
	list := func(account, contract string) int {
		t.Helper()

		before := reads

		_, metadata, err := r.List(t.Context(), provider("docker", selecting(account)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(metadata.Contract("v1.0.0")).To(Equal(contract))

		return reads - before
	}

	from, err := r.Source(provider("docker", selecting("")))
	g.Expect(err).NotTo(HaveOccurred())
	found, err := source.Resolve(t.Context(), from, source.Request{})
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
