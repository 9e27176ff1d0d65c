package release_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var _ = Describe("A first revision of a release", func() {
	var engine *release.Engine

	BeforeEach(func() { engine = newEngine("one") })

	prepare := func(ctx context.Context, spec release.Spec) (*release.Prepared, error) {
		return engine.Prepare(ctx, spec, state.Memory{}, observe(ctx, engine, spec), false)
	}

	// foreign creates a ConfigMap of another release.
	foreign := func(ctx context.Context, namespace, name string) {
		GinkgoHelper()

		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Annotations: map[string]string{
				"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": namespace,
			},
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	It("finds what belongs to others before it changes anything", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		foreign(ctx, namespace, "b")

		_, err := prepare(ctx, specOf(namespace, "1.0.0", configMap("a", ""), configMap("b", "")))
		Expect(expectError[*apply.ConflictError](err)).To(MatchError(ContainSubstring("belongs to release")))
		Expect(history(ctx, namespace)).To(BeEmpty())

		Expect(client.CoreV1().ConfigMaps(namespace).Delete(ctx, "b", metav1.DeleteOptions{})).To(Succeed())

		_, err = prepare(ctx, specOf(namespace, "1.0.0", configMap("a", ""), configMap("b", "")))
		Expect(err).NotTo(HaveOccurred())
	})

	It("leaves alone what others create meanwhile", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		spec := specOf(namespace, "1.0.0", configMap("a", ""), configMap("b", ""))
		prepared, err := prepare(ctx, spec)
		Expect(err).NotTo(HaveOccurred())

		foreign(ctx, namespace, "b")

		_, err = prepared.Apply(ctx, "")
		Expect(expectError[*apply.ConflictError](err)).To(MatchError(ContainSubstring("belongs to release")))

		left, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "b", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(left.Annotations).To(HaveKeyWithValue("meta.helm.sh/release-name", "other"))
	})

	It("adopts what has no owner, even if it was created meanwhile", func(ctx SpecContext) {
		namespace := newNamespace(ctx)

		for i := range 2 {
			name := fmt.Sprintf("adopted-%d", i)
			create := func() {
				GinkgoHelper()

				_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx,
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				Expect(err == nil || apierrors.IsAlreadyExists(err)).To(BeTrue())
			}

			if i == 0 {
				create()
			}

			spec := specOf(namespace, "1.0.0", configMap(name, "value"))
			spec.Release.Name = name
			prepared, err := prepare(ctx, spec)
			Expect(err).NotTo(HaveOccurred())

			create()

			result, err := prepared.Apply(ctx, "")
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Adopted()).To(HaveLen(1))
		}
	})
})
