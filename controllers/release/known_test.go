package release_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var _ = Describe("A record", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) { namespace, engine = newNamespace(ctx), newEngine("one") })

	// read returns a revision and its record, as another process reads them.
	read := func(ctx context.Context, number int) (state.Revision, *release.Record) {
		GinkgoHelper()

		history, err := reader.Observe(ctx, releaseIn(namespace))
		Expect(err).NotTo(HaveOccurred())

		revision, _ := history.Find(number)
		record, err := reader.Read(ctx, releaseIn(namespace), revision)
		Expect(err).NotTo(HaveOccurred())

		return revision, record
	}

	// swap gives a revision the content of another one, but keeps its number.
	swap := func(ctx context.Context, spec release.Spec) {
		GinkgoHelper()

		other := newNamespace(ctx)
		forged := spec
		forged.Release = releaseIn(other)
		mustApply(ctx, newEngine("forger"), forged)

		secret, err := client.CoreV1().Secrets(other).Get(ctx, secretOf(1), metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		target, err := client.CoreV1().Secrets(namespace).Get(ctx, secretOf(1), metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		target.Data = secret.Data
		_, err = client.CoreV1().Secrets(namespace).Update(ctx, target, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	// known returns a revision that is confirmed by the digest of its record.
	known := func(number int, record *release.Record) state.Revision {
		return state.Revision{
			ReleaseRevision: v1alpha2.ReleaseRevision{Number: number, Digest: record.Digest},
		}
	}

	forgery := func() release.Spec { return specOf("", "1.0.0", configMap("forged", "x")) }

	It("has the digest that was announced, also after other writes to it", func(ctx SpecContext) {
		spec := specOf(namespace, "1.0.0", configMap("config", "first"))

		var announced string

		memory := state.Memory{Announce: func(_ context.Context, revision state.Revision, _ []object.Key) error {
			announced = revision.Digest
			return nil
		}}

		prepared, err := engine.Prepare(ctx, spec, memory, observe(ctx, engine, spec), false)
		Expect(err).NotTo(HaveOccurred())
		Expect(prepared.Apply(ctx, "")).Error().NotTo(HaveOccurred())

		_, record := read(ctx, 1)
		Expect(record.Digest).To(Equal(announced))

		mustApply(ctx, engine, specOf(namespace, "2.0.0", configMap("config", "second")))

		_, record = read(ctx, 1)
		Expect(record.Digest).To(Equal(announced), "superseded")
	})

	It("is no target of a rollback if another one is confirmed", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "first")))
		_, genuine := read(ctx, 1)
		second := specOf(namespace, "2.0.0", configMap("config", "second"))
		mustApply(ctx, engine, second)

		swap(ctx, forgery())

		options := release.RollbackOptions{Target: known(1, genuine), Reason: "a test"}
		_, err := rollback(ctx, engine, second.Release, options, observe(ctx, engine, second))
		Expect(err).To(MatchError(HavePrefix("revision 1 of Helm release")))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
		Expect(history(ctx, namespace)).To(HaveLen(2))
	})

	It("is not replaced if another one is confirmed", func(ctx SpecContext) {
		first := specOf(namespace, "1.0.0", configMap("config", "first"))
		mustApply(ctx, engine, first)
		_, genuine := read(ctx, 1)
		swap(ctx, forgery())

		observed := observe(ctx, engine, first)
		observed.Revision.Digest = genuine.Digest
		_, err := applyObserved(ctx, engine, specOf(namespace, "2.0.0", configMap("config", "second")), observed)
		Expect(err).To(MatchError(ContainSubstring("is not known to be this resource's")))

		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
	})

	It("whose digest is not known is not what an object was before", func(ctx SpecContext) {
		withData := func(data string) string {
			return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {" + data + "}\n"
		}
		kubectlApply(ctx, namespace, withData("text: x, secure: z"))

		planter, other := newEngine("planter"), newNamespace(ctx)
		planted := specOf(other, "1.0.0", withData("text: x, secure: z"))
		mustApply(ctx, planter, planted)

		secret, err := client.CoreV1().Secrets(other).Get(ctx, secretOf(1), metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		secret.ObjectMeta = metav1.ObjectMeta{Name: secret.Name, Labels: secret.Labels}
		_, err = client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		spec := specOf(namespace, "1.0.0", withData("text: x"))
		history, err := engine.Observe(ctx, spec.Release)
		Expect(err).NotTo(HaveOccurred())
		digest, err := spec.Digest()
		Expect(err).NotTo(HaveOccurred())

		observed := engine.Determine(history, digest)
		Expect(observed.State).To(Equal(state.Unconfirmed))
		prepared, err := engine.Prepare(ctx, spec, state.Memory{Revisions: history.Revisions}, observed, false)
		Expect(err).NotTo(HaveOccurred())
		Expect(prepared.Apply(ctx, "")).To(HaveField("Revision", 2))
		Expect(getConfigMap(ctx, namespace, "shared").Data).To(Equal(map[string]string{"text": "x", "secure": "z"}))
	})

	It("is never acted on if its digest is not known", func(ctx SpecContext) {
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "first")))
		second := specOf(namespace, "2.0.0", configMap("config", "second"))
		mustApply(ctx, engine, second)

		options := release.RollbackOptions{Target: known(1, &release.Record{}), Reason: "a test"}
		_, err := rollback(ctx, engine, second.Release, options, observe(ctx, engine, second))
		Expect(err).To(MatchError(ContainSubstring("is not known to be this resource's")))

		_, err = engine.Correct(ctx, second.Release, known(2, &release.Record{}), nil)
		Expect(err).To(MatchError(ContainSubstring("is not known to be this resource's")))

		Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
		Expect(history(ctx, namespace)).To(HaveLen(2))
	})
})
