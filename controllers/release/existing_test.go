package release_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/test/bed"
)

var _ = Describe("Releases that are installed at the same time share lists of what exists", func() {
	var (
		engine *release.Engine
		user   string
		since  time.Time
	)

	BeforeEach(func(ctx SpecContext) {
		user = "counted-" + newNamespace(ctx)
		config, err := apiServer.ConfigFor(user)
		Expect(err).NotTo(HaveOccurred())

		engine, err = release.NewEngine(config, release.Options{Holder: "one", ListObjects: true})
		Expect(err).NotTo(HaveOccurred())

		since = time.Now()
	})

	prepare := func(ctx context.Context, spec release.Spec) (*release.Prepared, error) {
		return engine.Prepare(ctx, spec, observe(ctx, engine, spec), release.PrepareOptions{Since: since})
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

	It("and read no object that does not exist", func(ctx SpecContext) {
		const releases = 3

		var specs []release.Spec
		for range releases {
			specs = append(specs,
				specOf(newNamespace(ctx), "1.0.0", configMap("a", ""), configMap("b", ""), serviceAccount("manager")))
		}

		var all []*release.Prepared

		for _, spec := range specs {
			prepared, err := prepare(ctx, spec)
			Expect(err).NotTo(HaveOccurred())

			all = append(all, prepared)
		}

		for _, prepared := range all {
			Expect(prepared.Apply(nil)).NotTo(BeZero())
		}

		// A list has several pages if other scenarios have left many objects.
		isCounted := func(r bed.Request) bool {
			return r.User == user && r.Resource != "" && !strings.Contains(r.URI, "continue=")
		}

		Eventually(func() (map[string]int, error) {
			requests, err := apiServer.Requests(isCounted)
			return bed.Count(requests, func(r bed.Request) string { return r.Verb + " " + r.Resource }), err
		}).Should(Equal(map[string]int{
			"list configmaps": 1, "create configmaps": 2 * releases,
			"list serviceaccounts": 1, "create serviceaccounts": releases,
			"list secrets": releases, "create secrets": releases, "update secrets": releases, // Helm's records
		}))
	})

	It("and find what belongs to others before they change anything", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		foreign(ctx, namespace, "b")

		since = time.Now()
		_, err := prepare(ctx, specOf(namespace, "1.0.0", configMap("a", ""), configMap("b", "")))
		Expect(expectError[*cluster.ConflictError](err)).To(MatchError(ContainSubstring("belongs to release")))
		Expect(history(ctx, namespace)).To(BeEmpty())

		Expect(client.CoreV1().ConfigMaps(namespace).Delete(ctx, "b", metav1.DeleteOptions{})).To(Succeed())

		_, err = prepare(ctx, specOf(namespace, "1.0.0", configMap("a", ""), configMap("b", "")))
		Expect(err).NotTo(HaveOccurred(), "what the list has is read again")
	})

	It("and leave alone what others create meanwhile", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		spec := specOf(namespace, "1.0.0", configMap("a", ""), configMap("b", ""))
		prepared, err := prepare(ctx, spec)
		Expect(err).NotTo(HaveOccurred())

		foreign(ctx, namespace, "b")

		_, err = prepared.Apply(nil)
		Expect(expectError[*cluster.ConflictError](err)).To(MatchError(ContainSubstring("belongs to release")))

		left, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "b", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(left.Annotations).To(HaveKeyWithValue("meta.helm.sh/release-name", "other"))
	})

	It("and adopt what has no owner, even if it was created meanwhile", func(ctx SpecContext) {
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

				since = time.Now()
			}

			spec := specOf(namespace, "1.0.0", configMap(name, "value"))
			spec.Release.Name = name
			prepared, err := prepare(ctx, spec)
			Expect(err).NotTo(HaveOccurred())

			create()

			result, err := prepared.Apply(nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(result.Adopted).To(HaveLen(1))
		}
	})
})
