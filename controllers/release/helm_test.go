package release_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/test/harness"
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

			It("takes over a release, and each can return to the other's revisions", func(ctx SpecContext) {
				path := func(version string, templates ...string) string { return write(chartOf(version, templates...)) }
				run(ctx, helm, "install", name, path("1.0.0", configMap("config", "1"), configMap("first", "")), "-n", namespace)
				run(ctx, helm, "upgrade", name, path("1.1.0", configMap("config", "2"), configMap("second", "")), "-n", namespace)

				spec := specOf(namespace, "2.0.0", configMap("config", "3"), configMap("third", ""))
				observed := observe(ctx, engine, spec)
				Expect(observed.State).To(Equal(state.Unmanaged))
				record, err := engine.Read(ctx, releaseIn(namespace), observed.Revision)
				Expect(err).NotTo(HaveOccurred())
				Expect(record.AppVersion).To(Equal("v1.1.0"))
				Expect(record.Objects).To(HaveLen(2))

				mustApply(ctx, engine, spec)
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "third"))
				Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())

				options := release.RollbackOptions{Target: confirmed(namespace, 1), Reason: "a test"}
				Expect(rollback(ctx, engine, spec.Release, options, observe(ctx, engine, spec))).Error().NotTo(HaveOccurred())
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config", "first"))
				mustApply(ctx, engine, spec)

				expectValue := func(value, object string) {
					GinkgoHelper()
					Expect(objects(ctx, namespace)).To(And(HaveLen(2), HaveKey("ConfigMap "+object),
						HaveKeyWithValue("ConfigMap config", value)))
				}
				rollback := []string{"rollback", name, "-n", namespace}

				if helm == "helm4" {
					// Helm 4 applies a revision of its own as it did first: on the server.
					output, err := command(ctx, helm, append(rollback, "2")...).CombinedOutput()
					Expect(err).To(HaveOccurred())
					Expect(string(output)).To(ContainSubstring(`conflict with "capstan"`))
					mustApply(ctx, engine, spec)
					expectValue("3", "third")

					rollback = append(rollback, "--server-side=false")
				}

				run(ctx, helm, append(rollback, "2")...)
				expectValue("2", "second")
				mustApply(ctx, engine, spec)
				run(ctx, helm, append(rollback, "1")...)
				expectValue("1", "first")
				run(ctx, helm, "upgrade", name, path("3.0.0", configMap("config", "4"), configMap("fourth", "")), "-n", namespace)
				expectValue("4", "fourth")
				expectUninstall(ctx, engine, namespace)
			})

			It("takes objects over, which its uninstall leaves if it is Helm 4", func(ctx SpecContext) {
				run(ctx, helm, "install", "other", write(chartOf("1.0.0", configMap("config", "theirs"))), "-n", namespace)
				mustApply(ctx, engine, specOf(namespace, "1.0.0",
					annotated(configMap("config", "ours"), "adoption-policy", "Always")))
				run(ctx, helm, "uninstall", "other", "-n", namespace)

				if helm == "helm4" {
					Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
				} else {
					Expect(configMaps(ctx, namespace)).To(BeEmpty())
				}
			})

			It("installs the chart of a provider without the engine", func(ctx SpecContext) {
				key := types.NamespacedName{Namespace: namespace, Name: "plain"}
				built, err := chartgen.Build(
					harness.Small(v1alpha2.InfrastructureProviderType, key, "plain"+helm, "v1.0.0").Bundle)
				Expect(err).NotTo(HaveOccurred())

				path := write(built)
				Expect(run(ctx, helm, "lint", "--strict", path)).NotTo(MatchRegexp(`\[(WARNING|ERROR)\]`))
				Expect(run(ctx, helm, "install", name, path, "-n", namespace, "--set", "variables.LEVEL=debug")).To(
					ContainSubstring("infrastructure-plain v1.0.0 has been deployed to the namespace " + namespace))
				Expect(run(ctx, helm, "list", "-n", namespace)).To(MatchRegexp(name + `\s.*deployed.*infrastructure-plain-1\.0\.0`))
				Expect(getDeployment(ctx, namespace, "plain"+helm+"-controller-manager").Spec.Template.Spec.Containers).To(
					ConsistOf(HaveField("Args", ConsistOf("--level=debug"))))
				run(ctx, helm, "uninstall", name, "-n", namespace)
			})

			It("reinstalls after an uninstall that kept the history", func(ctx SpecContext) {
				spec := specOf(namespace, "1.0.0", configMap("config", "1"))
				mustApply(ctx, engine, spec)
				run(ctx, helm, "uninstall", name, "--keep-history", "-n", namespace)
				Expect(observe(ctx, engine, spec).State).To(Equal(state.Uninstalled))
				Expect(mustApply(ctx, engine, spec).Revision).To(Equal(2))
				Expect(configMaps(ctx, namespace)).To(ConsistOf("config"))
				Expect(run(ctx, helm, "uninstall", name, "-n", namespace)).To(ContainSubstring("uninstalled"))
				Expect(configMaps(ctx, namespace)).To(BeEmpty(), "Helm 4 has found its marks on all objects")
				Expect(observe(ctx, engine, spec).State).To(Equal(state.Absent))
			})
		})
	}

	DescribeTable("waits while one works, and takes over after the timeout", func(ctx SpecContext, helm string) {
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

			err := command(running, helm, "upgrade", name, path, "-n", namespace).Run()
			Expect(running.Err()).To(HaveOccurred(), "helm must not end by itself: %v", err)
		}()

		spec := specOf(namespace, "2.0.0", configMap("config", "2"))

		Eventually(func() state.State { return observe(ctx, engine, spec).State }).Should(Equal(state.Locked))

		observed := observe(ctx, engine, spec)
		Expect(observed.Until).To(BeTemporally("~", time.Now().Add(5*time.Minute), time.Minute))
		_, err := applyObserved(ctx, engine, spec, observed)
		locked := expectError[*problem.Error](err)
		Expect(locked.Until).To(Equal(observed.Until))
		Expect(err).To(MatchError(ContainSubstring("helm rollback " + name + " -n " + namespace)))

		stop() // kills helm, which leaves pending-upgrade
		<-ended
		Expect(observe(ctx, engine, spec).State).To(Equal(state.Locked))

		impatient := newImpatientEngine()

		Eventually(func() state.State { return observe(ctx, impatient, spec).State }).Should(Equal(state.Interrupted))
		mustApply(ctx, impatient, spec)
		Expect(history(ctx, namespace)).To(Equal([]string{"1 superseded", "2 failed", "3 deployed"}))
		Expect(run(ctx, helm, "history", name, "-n", namespace)).
			To(ContainSubstring("Interrupted: another program left revision 2 pending-upgrade"))
	}, Entry(nil, "helm"), Entry(nil, "helm4"))

	// Helm 4 applies a release as its record says, on the server or, if it says nothing, on the client. A rollback takes
	// the method of its target, which all later upgrades keep.
	It("continues records of Helm 4 of each way to apply, as it does the engine's", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		number := 0
		helm := func(program string, args ...string) (method string) {
			GinkgoHelper()

			if args[0] == "upgrade" {
				args = append(args, name, write(chartOf("1.0.0", configMap("config", fmt.Sprint(number+1)))))
			}

			run(ctx, program, append(args, "-n", namespace)...)

			number++

			return strings.TrimSpace(fieldsOf(ctx, namespace, number)["apply_method"])
		}
		expectEngine := func() {
			GinkgoHelper()

			number++
			spec := specOf(namespace, "1.0.0", configMap("config", fmt.Sprint(number)))
			Expect(mustApply(ctx, engine, spec).Revision).To(Equal(number))
			Expect(observe(ctx, engine, spec).State).To(Equal(state.InSync))
			Expect(objects(ctx, namespace)).To(Equal(map[string]string{"ConfigMap config": fmt.Sprint(number)}))
			Expect(fieldsOf(ctx, namespace, number)).NotTo(HaveKey("apply_method"))
		}

		const onClient, onServer = "csa", "ssa"

		Expect(helm("helm", "upgrade", "--install")).To(BeEmpty())
		Expect(helm("helm4", "upgrade")).To(Equal(onClient), "after a record that says nothing")
		Expect(helm("helm4", "upgrade", "--server-side=true", "--force-conflicts")).To(Equal(onServer))
		expectEngine()
		Expect(helm("helm4", "upgrade")).To(Equal(onClient), "after a record of the engine")
		expectEngine()
		Expect(helm("helm4", "upgrade", "--server-side=true", "--force-conflicts")).To(Equal(onServer))
		Expect(helm("helm4", "rollback", name, "2")).To(Equal(onClient))
		Expect(helm("helm4", "upgrade")).To(Equal(onClient), "which the rollback has brought back")
		expectEngine()
		expectUninstall(ctx, engine, namespace)
	})

	It("applies over an edit by hand, with which upgrades of Helm 4 fail", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		edit := func() {
			GinkgoHelper()

			o, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "config", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())

			o.Data["key"] = "edited"
			_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, o, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
			Expect(err).NotTo(HaveOccurred())
		}

		run(ctx, "helm4", "install", name, write(chartOf("1.0.0", configMap("config", "1"))), "-n", namespace)
		edit()

		output, err := command(ctx, "helm4", "upgrade", name, write(chartOf("1.1.0", configMap("config", "2"))), "-n",
			namespace).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(output)).To(ContainSubstring(`conflict with "kubectl-edit"`))

		for _, value := range []string{"2", "3"} {
			mustApply(ctx, engine, specOf(namespace, "1.1.0", configMap("config", value)))
			Expect(objects(ctx, namespace)).To(HaveKeyWithValue("ConfigMap config", value))
			edit()
		}
	})

	It("does nothing if another program was faster", func(ctx SpecContext) {
		namespace, engine := newNamespace(ctx), newEngine("one")
		spec := specOf(namespace, "1.0.0", configMap("config", "1"))
		seen := observe(ctx, engine, spec)
		run(ctx, "helm", "install", name, write(spec.Chart), "-n", namespace)
		result, err := applyObserved(ctx, engine, spec, seen)
		Expect(err).To(MatchError(storage.ErrChanged))
		Expect(result).To(Equal(release.Result{}))

		seen = observe(ctx, engine, spec)
		run(ctx, "helm", "uninstall", name, "--keep-history", "-n", namespace)
		_, err = applyObserved(ctx, engine, spec, seen)
		Expect(err).To(MatchError(storage.ErrChanged))
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
