package release_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// rejected is an object that the API server refuses, although it accepts a dry run of it, in a namespace for
// which rejectIngresses was called. It is of a kind that is applied last.
const rejected = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: refused\n" +
	"spec: {defaultBackend: {service: {name: any, port: {number: 80}}}}\n"

// changes are what the second version does to the objects of the first.
var changes = map[string]struct {
	before, after []string
	immutable     bool
}{
	"adds an object": {
		nil,
		[]string{serviceAccount("added"), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: added\n"},
		false,
	},
	"removes an object": {
		[]string{serviceAccount("removed"), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: removed\n"},
		nil,
		false,
	},
	"renames an object": {[]string{serviceAccount("old-name")}, []string{serviceAccount("new-name")}, false},
	"changes an object's kind": {
		[]string{"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: same\n"},
		[]string{"apiVersion: v1\nkind: Secret\nmetadata:\n  name: same\n"},
		false,
	},
	"changes an immutable field": {[]string{deployment("one", "1")}, []string{deployment("two", "1")}, true},
}

var _ = Describe("A rollback", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) { namespace, engine = newNamespace(ctx), newEngine("one") })

	versions := func(change string) (first, second release.Spec) {
		c := changes[change]
		first = specOf(namespace, "1.0.0", append(c.before, configMap("config", "first"))...)
		second = specOf(namespace, "2.0.0", append(c.after, configMap("config", "second"))...)

		return first, second
	}
	rollBack := func(ctx context.Context, spec release.Spec, revision int) (release.Result, error) {
		options := release.RollbackOptions{Target: confirmed(namespace, revision), Reason: "a test"}
		return rollback(ctx, engine, spec.Release, options, observe(ctx, engine, spec))
	}

	for change := range changes {
		It("undoes an upgrade that "+change, func(ctx SpecContext) {
			first, second := versions(change)
			mustApply(ctx, engine, first)
			before := objects(ctx, namespace)
			mustApply(ctx, engine, second)
			Expect(objects(ctx, namespace)).NotTo(Equal(before))

			result, err := rollBack(ctx, second, 1)
			Expect(err).NotTo(HaveOccurred())
			Expect(result).To(And(HaveField("Revision", 3), HaveField("Status", v1alpha2.RevisionDeployed)))
			Expect(objects(ctx, namespace)).To(Equal(before))
			Expect(observe(ctx, engine, first).State).To(Equal(state.InSync), "with what was desired then")
			Expect(run(ctx, "helm", "history", name, "-n", namespace)).To(ContainSubstring("Rollback to 1: a test"))
		})

		It("undoes an upgrade that "+change+" and then is rejected", func(ctx SpecContext) {
			rejectIngresses(ctx, namespace)

			first, _ := versions(change)
			mustApply(ctx, engine, first)
			before := objects(ctx, namespace)
			second := specOf(namespace, "2.0.0", append(changes[change].after, configMap("config", "second"), rejected)...)
			_, err := applySpec(ctx, engine, second)
			expectError[*apply.RejectedError](err)
			Expect(observe(ctx, engine, second).Revision).To(HaveField("Failure", v1alpha2.FailureRejected))

			_, err = rollBack(ctx, second, 1)
			Expect(err).NotTo(HaveOccurred())
			Expect(objects(ctx, namespace)).To(Equal(before))
			Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
			Expect(observe(ctx, engine, second).State).To(Equal(state.RolledBack))
		})

		for _, helm := range []string{"helm", "helm4"} {
			// Until Helm 3.22, the first rollback failed if the upgrade had dropped an object: "no ConfigMap with the name".
			for _, refused := range []bool{false, true} {
				subject := "by " + helm + " undoes an upgrade that " + change
				if refused {
					subject += " and then is rejected"
				}

				It(subject+", or the engine does so", func(ctx SpecContext) {
					first, second := versions(change)
					mustApply(ctx, engine, first)
					before := objects(ctx, namespace)

					if refused {
						rejectIngresses(ctx, namespace)

						_, err := applySpec(ctx, engine, specOf(namespace, "2.0.0",
							append(changes[change].after, configMap("config", "second"), rejected)...))
						expectError[*apply.RejectedError](err)
					} else {
						mustApply(ctx, engine, second)
					}

					output, err := command(ctx, helm, "rollback", name, "1", "-n", namespace).CombinedOutput()
					if changes[change].immutable {
						Expect(err).To(HaveOccurred(), "helm does not replace objects")
						Expect(string(output)).To(ContainSubstring("field is immutable"))
						mustApply(ctx, engine, first)
					} else {
						Expect(err).NotTo(HaveOccurred(), string(output))
					}

					Expect(objects(ctx, namespace)).To(Equal(before))
				})
			}
		}
	}

	It("names the revisions of the history if its target does not exist", func(ctx SpecContext) {
		spec := specOf(namespace, "1.0.0", configMap("config", "1"))
		mustApply(ctx, engine, spec)
		_, err := rollBack(ctx, spec, 7)
		expectError[*problem.Error](err)
		Expect(err).To(MatchError(ContainSubstring("no revision 7 to roll back to; its history has 1")))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
	})

	It("keeps the last healthy revision, however many attempts follow", func(ctx SpecContext) {
		rejectIngresses(ctx, namespace)

		first := specOf(namespace, "1.0.0", configMap("config", "1"))
		first.HistoryLimit = 3
		mustApply(ctx, engine, first)
		markHealthy(ctx, releaseIn(namespace))

		for _, version := range []string{"2.0.0", "3.0.0", "4.0.0", "5.0.0"} {
			spec := specOf(namespace, version, rejected)
			spec.HistoryLimit = 3
			_, err := applySpec(ctx, engine, spec)
			Expect(err).To(HaveOccurred())
		}

		found := accepted(ctx, newEngine("another"), releaseIn(namespace))
		last, exists := found.RollbackTarget("", state.Policy{})
		Expect(exists).To(BeTrue(), "%v", history(ctx, namespace))
		Expect(last.Number).To(Equal(1))
		Expect(len(found.Revisions)).To(BeNumerically("<=", 4))
	})

	It("is not confused by the label that helm has copied", func(ctx SpecContext) {
		spec := specOf(namespace, "1.0.0", configMap("config", "1"))
		mustApply(ctx, engine, spec)
		markHealthy(ctx, releaseIn(namespace))
		run(ctx, "helm", "rollback", name, "1", "-n", namespace)
		Expect(observe(ctx, engine, spec).Revision).To(And(HaveField("Number", 2), HaveField("Healthy", false)))
		mustApply(ctx, engine, spec)
		Expect(observe(ctx, engine, spec).Revision).To(And(HaveField("Number", 3), HaveField("Healthy", false)))
	})
})

var _ = Describe("A revision", func() {
	It("is marked failed with the reason, unless it has changed", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		spec := specOf(namespace, "1.0.0", configMap("config", "1"))
		mustApply(ctx, engine, spec)
		seen := observe(ctx, engine, spec).Revision

		markFailed := func(reason string) error {
			mark(ctx, spec.Release, func(r *state.Revision) {
				r.Status, r.Failure = v1alpha2.RevisionFailed, v1alpha2.FailureUnhealthy
			})

			return engine.MarkFailed(ctx, spec.Release, seen, v1alpha2.FailureUnhealthy, reason)
		}
		Expect(markFailed("not healthy within 5m")).To(Succeed())

		observed := observe(ctx, engine, spec)
		Expect(observed.State).To(Equal(state.Failed))
		Expect(observed.Revision.Failure).To(Equal(v1alpha2.FailureUnhealthy))

		for _, helm := range []string{"helm", "helm4"} {
			Expect(run(ctx, helm, "history", name, "-n", namespace)).To(MatchRegexp(`1 .*failed.*not healthy within 5m`))
		}

		Expect(markFailed("again")).To(MatchError(storage.ErrChanged))
		mustApply(ctx, engine, spec)
		Expect(observe(ctx, engine, spec).State).To(Equal(state.InSync))
	})

	It("leaves out kinds that are no longer served, if asked to", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		establishCRD(ctx, namespace, "vanished")

		first := specOf(namespace, "1.0.0", custom("vanished", "x"), configMap("config", "first"))
		second := specOf(namespace, "2.0.0", custom("vanished", "x"), configMap("config", "second"))

		Eventually(func() error { _, err := applySpec(ctx, engine, first); return err }).Should(Succeed())
		mustApply(ctx, engine, second)
		run(ctx, "kubectl", "delete", "crd", "vanished.release.test", "--wait")

		options := release.RollbackOptions{Target: confirmed(namespace, 1), Reason: "a test", SkipUnknownKinds: true}
		_, err := rollback(ctx, engine, second.Release, options, observe(ctx, engine, second))
		Expect(err).NotTo(HaveOccurred())
		Expect(objects(ctx, namespace)).To(HaveKeyWithValue("ConfigMap config", "first"))
	})
})

// objects returns the objects of a namespace, of the kinds that the charts here have.
func objects(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()

	found := map[string]string{}
	maps, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())

	for _, o := range maps.Items {
		if o.Name == "kube-root-ca.crt" {
			continue // every namespace gets it sooner or later
		}

		found["ConfigMap "+o.Name] = o.Data["key"]
	}

	secrets, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Opaque"})
	Expect(err).NotTo(HaveOccurred())

	for _, o := range secrets.Items {
		found["Secret "+o.Name] = ""
	}

	accounts, err := client.CoreV1().ServiceAccounts(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())

	for _, o := range accounts.Items {
		if o.Name == "default" {
			continue // so does this one
		}

		found["ServiceAccount "+o.Name] = ""
	}

	deployments, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())

	for _, o := range deployments.Items {
		found["Deployment "+o.Name] = metav1.FormatLabelSelector(o.Spec.Selector)
	}

	return found
}
