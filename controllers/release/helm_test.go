package release_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/test/faults"
)

var _ = Describe("Together with the helm programs, the engine", func() {
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

			It("sees a rollback and its target, and can continue", func(ctx SpecContext) {
				mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "1"), configMap("dropped", "")))
				spec := specOf(namespace, "1.1.0", configMap("config", "2"), configMap("added", ""))
				mustApply(ctx, engine, spec)
				run(ctx, helm, "rollback", name, "1", "-n", namespace)
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "dropped"))

				observed := observe(ctx, engine, spec)
				Expect(observed.State).To(Equal(state.Unmanaged))
				Expect(observed.Revision).To(HaveField("Number", 3))
				Expect(observed.Revision).To(HaveField("Origin", 1))
				record, err := engine.Read(ctx, releaseIn(namespace), observed.Revision)
				Expect(err).NotTo(HaveOccurred())
				Expect(record.Description).To(Equal("Rollback to 1"))

				mustApply(ctx, engine, spec)
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "added"))
				Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 superseded", "3 superseded", "4 deployed"}))
			})

			It("sees an upgrade, although it copies the engine's labels", func(ctx SpecContext) {
				spec := specOf(namespace, "1.0.0", configMap("config", "1"))
				mustApply(ctx, engine, spec)
				run(ctx, helm, "upgrade", name, write(chartOf("1.0.0", configMap("config", "theirs"))), "-n", namespace)
				observed := observe(ctx, engine, spec)
				Expect(observed.State).To(Equal(state.Unmanaged))
				Expect(observed.Revision).To(HaveField("Origin", 1))
				mustApply(ctx, engine, spec)
				Expect(observe(ctx, engine, spec).State).To(Equal(state.InSync))
			})

			It("takes over an install", func(ctx SpecContext) {
				run(ctx, helm, "install", name, write(chartOf("1.0.0", configMap("config", "1"), configMap("dropped", ""))),
					"-n", namespace)
				spec := specOf(namespace, "1.1.0", configMap("config", "2"))
				Expect(observe(ctx, engine, spec).State).To(Equal(state.Unmanaged))
				mustApply(ctx, engine, spec)
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
			})

			It("reinstalls after an uninstall that kept the history", func(ctx SpecContext) {
				spec := specOf(namespace, "1.0.0", configMap("config", "1"))
				mustApply(ctx, engine, spec)
				run(ctx, helm, "uninstall", name, "--keep-history", "-n", namespace)
				Expect(observe(ctx, engine, spec).State).To(Equal(state.Uninstalled))
				Expect(mustApply(ctx, engine, spec).Revision).To(Equal(2))
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
				Expect(run(ctx, helm, "uninstall", name, "-n", namespace)).To(ContainSubstring("uninstalled"))
				Expect(observe(ctx, engine, spec).State).To(Equal(state.Absent))
			})
		})
	}

	It("waits for a running operation, and takes over after the timeout", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", "1")))

		// A hook that never ends keeps helm busy, as no node runs its Pod.
		hook := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: endless\n  annotations: {helm.sh/hook: pre-upgrade}\n" +
			"spec: {containers: [{name: c, image: example.org/c}]}\n"
		path := write(chartOf("1.1.0", configMap("config", "theirs"), hook))
		running, stop := context.WithCancel(ctx)

		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer GinkgoRecover()

			err := command(running, "helm", "upgrade", name, path, "-n", namespace).Run()
			Expect(running.Err()).To(HaveOccurred(), "helm must not end by itself: %v", err)
		}()

		spec := specOf(namespace, "2.0.0", configMap("config", "2"))

		Eventually(func() state.State { return observe(ctx, engine, spec).State }).WithTimeout(10 * time.Second).
			Should(Equal(state.Locked))

		observed := observe(ctx, engine, spec)
		Expect(observed.Until).To(BeTemporally("~", time.Now().Add(5*time.Minute), time.Minute))
		_, err := applyObserved(ctx, engine, spec, observed)
		locked := expectError[*release.LockedError](err)
		Expect(locked.Until).To(Equal(observed.Until))
		Expect(err).To(MatchError(ContainSubstring("helm rollback " + name + " -n " + namespace)))

		for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
			elsewhere := faults.New(1)
			elsewhere.SetSkew(skew)

			skewed := observe(ctx, newEngine("one", func(c *rest.Config) { c.Wrap(elsewhere.Wrap) }), spec)
			Expect(skewed.State).To(Equal(state.Locked), "the API server's clock is ahead by %s", skew)
			Expect(skewed.Until).To(BeTemporally("~", time.Now().Add(5*time.Minute), time.Minute), "by this clock")
		}

		stop() // kills helm, which leaves pending-upgrade
		<-ended
		Expect(observe(ctx, engine, spec).State).To(Equal(state.Locked))

		impatient := newImpatientEngine("one")

		Eventually(func() state.State { return observe(ctx, impatient, spec).State }).Should(Equal(state.Interrupted))
		mustApply(ctx, impatient, spec)
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		Expect(run(ctx, "helm", "history", name, "-n", namespace)).
			To(ContainSubstring("Interrupted: another program left revision 2 pending-upgrade"))
	})

	It("does nothing if another program was faster", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		spec := specOf(namespace, "1.0.0", configMap("config", "1"))
		seen := observe(ctx, engine, spec)
		run(ctx, "helm", "install", name, write(spec.Chart), "-n", namespace)
		result, err := applyObserved(ctx, engine, spec, seen)
		Expect(err).To(MatchError(release.ErrChanged))
		Expect(result).To(Equal(release.Result{}))

		seen = observe(ctx, engine, spec)
		run(ctx, "helm", "uninstall", name, "--keep-history", "-n", namespace)
		_, err = applyObserved(ctx, engine, spec, seen)
		Expect(err).To(MatchError(release.ErrChanged))
	})
})

// write writes a chart to a file for the helm programs and returns its path.
func write(c *chart.Chart) string {
	GinkgoHelper()

	archive, err := c.Archive()
	Expect(err).NotTo(HaveOccurred())

	path := filepath.Join(GinkgoT().TempDir(), c.Filename())
	Expect(os.WriteFile(path, archive, 0o600)).To(Succeed())

	return path
}
