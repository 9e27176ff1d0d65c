package clusters

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
)

// counted is a cluster that counts lists.
type counted struct {
	lists int
	err   error // of lists
	in    client.WithWatch
}

func newCounted(t *testing.T, objects ...client.Object) *counted {
	t.Helper()

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(crds.AddToScheme(scheme)).To(Succeed())

	c := &counted{}
	c.in = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, in client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			c.lists++

			if c.err != nil {
				return c.err
			}

			return in.List(ctx, list, options...)
		},
	}).Build()

	return c
}

// labeled returns a ConfigMap of a provider.
func labeled(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tiny", Name: name, Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-a"},
	}}
}

// configMap returns what a ConfigMap is read into.
func configMap() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))

	return o
}

func TestPollsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		others := labeled("others")
		others.Labels = nil
		there := newCounted(t, labeled("a"), labeled("b"), others)
		polls := newPolls(there.in)
		reader := &polledReader{polls: polls, account: there.in}
		read := func(name string) error {
			return reader.Get(t.Context(), client.ObjectKey{Namespace: "tiny", Name: name}, configMap())
		}

		g.Expect(read("a")).To(Succeed())
		g.Expect(read("b")).To(Succeed())
		g.Expect(apierrors.IsNotFound(read("c"))).To(BeTrue())
		g.Expect(apierrors.IsNotFound(read("others"))).To(BeTrue(), "it belongs to no provider")
		g.Expect(there.lists).To(Equal(1))

		g.Expect(there.in.Create(t.Context(), labeled("c"))).To(Succeed())
		polls.expire()
		g.Expect(read("c")).To(Succeed(), "the operator has written since")
		g.Expect(there.lists).To(Equal(2))

		g.Expect(there.in.Delete(t.Context(), labeled("c"))).To(Succeed())
		g.Expect(read("c")).To(Succeed(), "as it was a moment ago")
		synctest.Wait()
		time.Sleep(pollAge + time.Second)
		g.Expect(apierrors.IsNotFound(read("c"))).To(BeTrue())
		time.Sleep(pollAge + time.Second)
		g.Expect(polls.lists).To(BeEmpty(), "nothing is kept")
	})
}

func TestPollsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		there := newCounted(t, labeled("a"))
		reader := &polledReader{polls: newPolls(there.in), account: there.in}
		read := func() error {
			return reader.Get(t.Context(), client.ObjectKey{Namespace: "tiny", Name: "a"}, configMap())
		}

		there.err = apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)

		g.Expect(read()).To(Succeed(), "single objects may be read")
		time.Sleep(pollAge + time.Second)

		there.err = apierrors.NewInternalError(context.DeadlineExceeded)
		g.Expect(read()).To(MatchError(there.err))
		synctest.Wait()

		there.err = nil

		g.Expect(read()).To(Succeed(), "an error is not shared")
		time.Sleep(pollAge + time.Second)
	})
}

func TestPolledDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		definition := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "as.example.com", Labels: map[string]string{"of": "a"}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{},
			}}},
		}
		there := newCounted(t, definition)
		reader := &polledReader{polls: newPolls(there.in), account: there.in}

		found := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(reader.Get(t.Context(), client.ObjectKeyFromObject(definition), found)).To(Succeed())
		g.Expect(found.Spec.Versions).To(ConsistOf(HaveField("Schema", BeNil())), "schemas take much memory")

		for selected, count := range map[string]int{"a": 1, "b": 0} {
			list := &apiextensionsv1.CustomResourceDefinitionList{}
			g.Expect(reader.List(t.Context(), list, client.MatchingLabels{"of": selected})).To(Succeed())
			g.Expect(list.Items).To(HaveLen(count))
		}

		g.Expect(there.lists).To(Equal(1))
		time.Sleep(pollAge + time.Second)
	})
}
