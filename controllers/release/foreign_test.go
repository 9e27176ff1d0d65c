package release_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/release"
)

var _ = Describe("Beside the helm programs", func() {
	for _, helm := range []string{"helm", "helm4"} {
		Context(helm, func() {
			var (
				namespace string
				engine    *release.Engine
			)

			BeforeEach(func(ctx SpecContext) {
				namespace = newNamespace(ctx)
				engine = newEngine("one")
			})

			It("rolls back what the engine made; the engine sees to what, and can go on", func(ctx SpecContext) {
				mustApply(
					ctx,
					engine,
					desired(namespace, chartOf("1.0.0", configMap("config", "1"), configMap("dropped", "")), nil),
				)
				d := desired(namespace, chartOf("1.1.0", configMap("config", "2"), configMap("added", "")), nil)
				mustApply(ctx, engine, d)
				run(ctx, helm, "rollback", name, "1", "-n", namespace)
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "dropped"))

				state := stateOf(ctx, engine, d)
				Expect(state.Condition).To(Equal(release.Foreign))
				Expect(state.Revision).To(HaveField("Number", 3))
				Expect(state.Revision).To(HaveField("Origin", 1))
				record, err := engine.Read(ctx, namespace, name, state.Revision)
				Expect(err).NotTo(HaveOccurred())
				Expect(record.Description).To(Equal("Rollback to 1"))

				mustApply(ctx, engine, d)
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "added"))
				Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 superseded", "3 superseded", "4 deployed"}))
			})

			It("upgrades what the engine made; the engine sees it, though its labels are inherited", func(ctx SpecContext) {
				d := desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil)
				mustApply(ctx, engine, d)
				run(ctx, helm, "upgrade", name, write(chartOf("1.0.0", configMap("config", "theirs"))), "-n", namespace)
				state := stateOf(ctx, engine, d)
				Expect(state.Condition).To(Equal(release.Foreign))
				Expect(state.Revision).To(HaveField("Origin", 1))
				mustApply(ctx, engine, d)
				Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.InSync))
			})

			It("installs what the engine takes over", func(ctx SpecContext) {
				run(
					ctx,
					helm,
					"install",
					name,
					write(chartOf("1.0.0", configMap("config", "1"), configMap("dropped", ""))),
					"-n",
					namespace,
				)
				d := desired(namespace, chartOf("1.1.0", configMap("config", "2")), nil)
				Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.Foreign))
				mustApply(ctx, engine, d)
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
			})

			It("uninstalls, keeping the history, what the engine then installs anew", func(ctx SpecContext) {
				d := desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil)
				mustApply(ctx, engine, d)
				run(ctx, helm, "uninstall", name, "--keep-history", "-n", namespace)
				Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.Uninstalled))
				Expect(mustApply(ctx, engine, d).Revision).To(Equal(2))
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
				Expect(run(ctx, helm, "uninstall", name, "-n", namespace)).To(ContainSubstring("uninstalled"))
				Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.Absent))
			})
		})
	}

	It("waits for an operation that is under way, and takes over when it is given up", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		mustApply(ctx, engine, desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil))

		// A hook that never ends keeps helm busy, as no node runs its Pod.
		hook := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: endless\n  annotations: {helm.sh/hook: pre-upgrade}\n" +
			"spec: {containers: [{name: c, image: example.org/c}]}\n"
		path := write(chartOf("1.1.0", configMap("config", "theirs"), hook))
		helming, stop := context.WithCancel(ctx)

		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer GinkgoRecover()

			err := command(helming, "helm", "upgrade", name, path, "-n", namespace).Run()
			Expect(helming.Err()).To(HaveOccurred(), "helm ended by itself: %v", err)
		}()

		d := desired(namespace, chartOf("2.0.0", configMap("config", "2")), nil)

		Eventually(func() release.Condition { return stateOf(ctx, engine, d).Condition }).WithTimeout(10 * time.Second).
			Should(Equal(release.Pending))

		state := stateOf(ctx, engine, d)
		Expect(state.Until).To(BeTemporally("~", time.Now().Add(5*time.Minute), time.Minute))
		_, err := engine.Apply(ctx, d, state)

		var pending *release.PendingError
		Expect(errors.As(err, &pending)).To(BeTrue(), "%v", err)
		Expect(pending.Until).To(Equal(state.Until))
		Expect(err).To(MatchError(ContainSubstring("helm rollback " + name + " -n " + namespace)))

		stop() // kills helm, which leaves pending-upgrade
		<-ended
		Expect(stateOf(ctx, engine, d).Condition).To(Equal(release.Pending))

		impatient := newImpatientEngine("one")

		Eventually(func() release.Condition { return stateOf(ctx, impatient, d).Condition }).Should(Equal(release.Abandoned))
		mustApply(ctx, impatient, d)
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		Expect(
			run(ctx, "helm", "history", name, "-n", namespace),
		).To(ContainSubstring("Abandoned: another program left revision 2 pending-upgrade"))
	})

	It("does nothing if somebody else was faster", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		d := desired(namespace, chartOf("1.0.0", configMap("config", "1")), nil)
		seen := stateOf(ctx, engine, d)
		run(ctx, "helm", "install", name, write(d.Chart), "-n", namespace)
		result, err := engine.Apply(ctx, d, seen)
		Expect(err).To(MatchError(release.ErrChanged))
		Expect(result).To(Equal(release.Result{}))

		seen = stateOf(ctx, engine, d)
		run(ctx, "helm", "uninstall", name, "--keep-history", "-n", namespace)
		_, err = engine.Apply(ctx, d, seen)
		Expect(err).To(MatchError(release.ErrChanged))
	})
})

// write puts a chart where the helm programs can read it.
func write(c *chart.Chart) string {
	GinkgoHelper()

	archive, err := c.Archive()
	Expect(err).NotTo(HaveOccurred())

	path := filepath.Join(GinkgoT().TempDir(), c.Filename())
	Expect(os.WriteFile(path, archive, 0o600)).To(Succeed())

	return path
}
