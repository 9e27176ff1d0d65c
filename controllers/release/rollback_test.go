package release_test

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/release"
)

// rejected is an object that the API server refuses, of a kind that is applied after all others.
const rejected = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: refused\nspec: {}\n"

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

	versions := func(change string) (first, second release.Desired) {
		c := changes[change]
		first = desired(namespace, chartOf("1.0.0", append(c.before, configMap("config", "first"))...), nil)
		second = desired(namespace, chartOf("2.0.0", append(c.after, configMap("config", "second"))...), nil)

		return first, second
	}
	returnTo := func(ctx context.Context, d release.Desired, revision int) (release.Result, error) {
		return engine.Rollback(
			ctx,
			release.Return{Namespace: namespace, Name: name, Revision: revision, Reason: "a test"},
			stateOf(ctx, engine, d),
		)
	}

	for change := range changes {
		It("undoes an upgrade that "+change, func(ctx SpecContext) {
			first, second := versions(change)
			mustApply(ctx, engine, first)
			before := objects(ctx, namespace)
			mustApply(ctx, engine, second)
			Expect(objects(ctx, namespace)).NotTo(Equal(before))

			result, err := returnTo(ctx, second, 1)
			Expect(err).NotTo(HaveOccurred())
			Expect(result).To(And(HaveField("Revision", 3), HaveField("Status", release.StatusDeployed)))
			Expect(objects(ctx, namespace)).To(Equal(before))
			Expect(stateOf(ctx, engine, first).Condition).To(Equal(release.InSync), "what was desired then is in sync again")
			Expect(run(ctx, "helm", "history", name, "-n", namespace)).To(ContainSubstring("Rollback to 1: a test"))
		})

		It("undoes an upgrade that "+change+" and then is rejected", func(ctx SpecContext) {
			first, _ := versions(change)
			mustApply(ctx, engine, first)
			before := objects(ctx, namespace)
			second := desired(
				namespace,
				chartOf("2.0.0", append(changes[change].after, configMap("config", "second"), rejected)...),
				nil,
			)
			_, err := apply(ctx, engine, second)

			var refused *release.RejectedError
			Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
			Expect(stateOf(ctx, engine, second).Revision).To(HaveField("Failure", release.Rejected))

			_, err = returnTo(ctx, second, 1)
			Expect(err).NotTo(HaveOccurred())
			Expect(objects(ctx, namespace)).To(Equal(before))
			Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
			Expect(stateOf(ctx, engine, second).Condition).To(Equal(release.RolledBack))
		})

		for _, helm := range []string{"helm", "helm4"} {
			It("by "+helm+" undoes an upgrade that "+change+", or the engine does it after it", func(ctx SpecContext) {
				first, second := versions(change)
				mustApply(ctx, engine, first)
				before := objects(ctx, namespace)
				mustApply(ctx, engine, second)

				output, err := command(ctx, helm, "rollback", name, "1", "-n", namespace).CombinedOutput()
				if changes[change].immutable {
					Expect(err).To(HaveOccurred(), "the program replaces nothing")
					Expect(string(output)).To(ContainSubstring("field is immutable"))
					mustApply(ctx, engine, first)
				} else {
					Expect(err).NotTo(HaveOccurred(), string(output))
				}

				Expect(objects(ctx, namespace)).To(Equal(before))
			})
		}
	}

	It("goes to a revision that the history has, or says which it has", func(ctx SpecContext) {
		d := desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil)
		mustApply(ctx, engine, d)
		_, err := returnTo(ctx, d, 7)

		var none *release.NoRevisionError
		Expect(errors.As(err, &none)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("no revision 7 that can be returned to; its history has 1")))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 deployed"}))
	})

	It("finds the last healthy revision, however often was tried since", func(ctx SpecContext) {
		first := desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil)
		first.HistoryLimit = 3
		mustApply(ctx, engine, first)
		healthy := stateOf(ctx, engine, first).Revision
		Expect(engine.MarkHealthy(ctx, namespace, name, healthy)).To(Succeed())

		for _, version := range []string{"2.0.0", "3.0.0", "4.0.0", "5.0.0"} {
			d := desired(namespace, chartOf(version, rejected), nil)
			d.HistoryLimit = 3
			_, err := apply(ctx, engine, d)
			Expect(err).To(HaveOccurred())
		}

		observed, err := newEngine("another").Observe(ctx, namespace, name)
		Expect(err).NotTo(HaveOccurred())

		last, exists := observed.LastHealthy("")
		Expect(exists).To(BeTrue(), "%v", history(ctx, namespace))
		Expect(last.Number).To(Equal(1))
		Expect(len(observed.Revisions)).To(BeNumerically("<=", 4))
	})

	It("is not confused by labels that a program of a person's has inherited", func(ctx SpecContext) {
		d := desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil)
		mustApply(ctx, engine, d)
		Expect(engine.MarkHealthy(ctx, namespace, name, stateOf(ctx, engine, d).Revision)).To(Succeed())
		run(ctx, "helm", "rollback", name, "1", "-n", namespace)
		Expect(stateOf(ctx, engine, d).Revision).To(And(HaveField("Number", 2), HaveField("Healthy", false)))
		mustApply(ctx, engine, d)
		Expect(stateOf(ctx, engine, d).Revision).To(And(HaveField("Number", 3), HaveField("Healthy", false)))
	})
})

var _ = Describe("A revision that is not healthy in time", func() {
	It("is marked failed with the reason, and a mark that comes too late is refused", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		d := desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil)
		mustApply(ctx, engine, d)
		seen := stateOf(ctx, engine, d).Revision
		Expect(engine.MarkFailed(ctx, namespace, name, seen, release.Unhealthy, "not healthy within 5m")).To(Succeed())

		state := stateOf(ctx, engine, d)
		Expect(state.Condition).To(Equal(release.Failed))
		Expect(state.Revision.Failure).To(Equal(release.Unhealthy))

		for _, helm := range []string{"helm", "helm4"} {
			Expect(run(ctx, helm, "history", name, "-n", namespace)).To(MatchRegexp(`1 .*failed.*not healthy within 5m`))
		}

		Expect(engine.MarkFailed(ctx, namespace, name, seen, release.Unhealthy, "again")).To(MatchError(release.ErrChanged))
		mustApply(ctx, engine, d)
		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.InSync))
	})

	It("cannot be marked healthy once it is gone", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		d := desired(namespace, chartOf("1.0.0"), nil)
		mustApply(ctx, engine, d)
		seen := stateOf(ctx, engine, d).Revision
		run(ctx, "helm", "uninstall", name, "-n", namespace)
		Expect(engine.MarkHealthy(ctx, namespace, name, seen)).To(MatchError(release.ErrChanged))
	})
})

// objects are the namespace's objects as far as the charts here make them.
func objects(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()

	found := map[string]string{}
	maps, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())

	for _, o := range maps.Items {
		if o.Name == "kube-root-ca.crt" {
			continue // that every namespace gets, sooner or later
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
		found["ServiceAccount "+o.Name] = ""
	}

	deployments, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())

	for _, o := range deployments.Items {
		found["Deployment "+o.Name] = metav1.FormatLabelSelector(o.Spec.Selector)
	}

	return found
}
