package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// waveOrders are the orders of the five waves of a provider. The fourth one is that of objects without an order,
// the last one consists of additional manifests.
var waveOrders = []int{-20, -10, -1, 0, 10}

// waveObjects returns the objects of a wave: seven ConfigMaps with the version, and a Deployment that runs on nodes
// with a label.
func waveObjects(namespace string, wave int, version string) string {
	annotations := fmt.Sprintf("annotations: {capstan.dev/apply-order: \"%d\"}", waveOrders[wave])
	if waveOrders[wave] == 0 {
		annotations = "annotations: {}"
	}

	objects := fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: wave-%[1]d-gate, namespace: %[2]s, %[3]s}
spec:
  selector: {matchLabels: {gate: "%[1]d"}}
  template:
    metadata: {labels: {gate: "%[1]d"}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {wave-%[1]d: %[4]s}
      containers: [{name: gate, image: registry.example.com/gate}]
`, wave, namespace, annotations, version)

	for i := range 7 {
		objects += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: wave-%d-%d, namespace: %s, %s}\n"+
			"data: {version: %s}\n", wave, i, namespace, annotations, version)
	}

	return objects
}

// afterwards returns objects that are applied one after the other, after all waves, and are healthy at once: no watch
// shows it.
func afterwards(namespace string) string {
	var objects string

	for order := 11; order <= 15; order++ {
		objects += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: after-%[1]d, namespace: %[2]s, "+
			"annotations: {capstan.dev/apply-order: \"%[1]d\"}}\n", order, namespace)
	}

	return objects
}

// withWaves returns a provider with all waves but the last one.
func withWaves(name, version string) tiny {
	t := newTiny(name, version)
	for wave := range len(waveOrders) - 1 {
		t.components += waveObjects(name+"-system", wave, version)
	}

	return t
}

var _ = Describe("A release of five waves", Ordered, everyKubernetes, func() {
	var (
		w *world
		p *v1alpha2.InfrastructureProvider
	)

	last := func(t tiny) *corev1.ConfigMap {
		manifests := &corev1.ConfigMap{}
		manifests.Namespace, manifests.Name = t.name, "last-wave"
		manifests.Data = map[string]string{
			v1alpha2.ConfigMapManifestsKey: waveObjects(t.name, len(waveOrders)-1, t.version) + afterwards(t.name),
		}

		return manifests
	}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)

		t := withWaves("waves", "v1.0.0")
		w.offer(ctx, t)
		Expect(w.client.Create(ctx, last(t))).To(Succeed())

		p = t.resource()
		p.Spec.AdditionalManifests = &v1alpha2.ConfigMapReference{Name: "last-wave"}
	})

	// open lets the Deployment of a wave run.
	open := func(ctx context.Context, wave int, version string) {
		GinkgoHelper()
		w.run(ctx, "kubectl", "label", "nodes", "--all", "--overwrite", fmt.Sprintf("wave-%d=%s", wave, version))
	}
	// versions returns the waves of which ConfigMaps exist, with the versions that they have.
	versions := func(ctx context.Context) []string {
		GinkgoHelper()

		list := &corev1.ConfigMapList{}
		Expect(w.client.List(ctx, list, client.InNamespace(p.Namespace))).To(Succeed())

		found := map[string]bool{}

		for _, c := range list.Items {
			if wave, is := waveOf(c.Name); is {
				found[fmt.Sprintf("%d %s", wave, c.Data["version"])] = true
			}
		}

		all := make([]string, 0, len(found))
		for version := range found {
			all = append(all, version)
		}

		slices.Sort(all)

		return all
	}
	// written returns the waves whose objects the operator has written with a verb since a time, in that order and each
	// of them once as long as none comes in between. code is that of the API server's answer: objects that do not exist
	// are created by patches.
	written := func(verb string, code int, since time.Time) []int {
		GinkgoHelper()

		requests := w.operatorWrites(func(r bed.Request) bool {
			_, is := waveOf(r.Name)
			return is && r.Verb == verb && !r.DryRun && r.Code == code && r.Received.After(since)
		})
		slices.SortFunc(requests, func(a, b bed.Request) int { return a.Received.Compare(b.Received) })

		var waves []int

		for _, r := range requests {
			wave, _ := waveOf(r.Name)
			waves = append(waves, wave)
		}

		return slices.Compact(waves)
	}
	update := func(ctx context.Context, version string) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Version = version
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{
				Timeout:       &metav1.Duration{Duration: 10 * time.Second},
				Retries:       ptr.To(int32(1)),
				RetryInterval: &metav1.Duration{Duration: time.Second},
			}
		})
	}

	It("is installed wave by wave, although the operator is killed during each", func(ctx SpecContext) {
		Expect(w.client.Create(ctx, p)).To(Succeed())

		for wave := range waveOrders {
			gate := fmt.Sprintf("wave-%d-gate", wave)
			Eventually(func() []string { return versions(ctx) }).Should(HaveLen(wave + 1))
			Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.ProgressingReason, gate))
			Expect(versions(ctx)).To(HaveLen(wave+1), "the next wave waits")

			Expect(w.operator.Kill()).To(Succeed())
			open(ctx, wave, "v1.0.0")
			w.start()
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(written("patch", http.StatusCreated, time.Time{})).To(Equal([]int{0, 1, 2, 3, 4}))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-waves", "-n", "waves")).To(HaveLen(1))

		manifest := w.run(ctx, "helm", "get", "manifest", "infrastructure-waves", "-n", "waves")
		Expect(strings.Count(manifest, "name: wave-")).To(BeNumerically(">=", 40))
	})

	It("is rolled back before the next attempt if its third wave does not become healthy", func(ctx SpecContext) {
		open(ctx, 0, "v1.1.0")
		open(ctx, 1, "v1.1.0")

		w.offer(ctx, withWaves("waves", "v1.1.0"))

		since := time.Now()

		update(ctx, "v1.1.0")
		Eventually(func() []string { return versions(ctx) }).Should(Equal(
			[]string{"0 v1.1.0", "1 v1.1.0", "2 v1.1.0", "3 v1.0.0", "4 v1.0.0"}))

		// The next attempt would be due before the first wave is back.
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.TimedOutWaitingForDeploymentReason,
			"rolling back to v1.0.0; v1.1.0 failed, will be tried again"))
		open(ctx, 0, "v1.0.0")
		open(ctx, 1, "v1.0.0")

		// The next attempt stops at its first wave.
		Eventually(w.read(ctx, p)).Should(And(
			beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "wave-0-gate"),
			WithTransform(func(v1alpha2.Provider) []string { return versions(ctx) },
				Equal([]string{"0 v1.0.0", "1 v1.0.0", "2 v1.0.0", "3 v1.0.0", "4 v1.0.0"}))))
		Expect(written("patch", http.StatusOK, since)).To(Equal([]int{0, 1, 2, 0, 1, 2, 0}))
	})

	It("is not changed if an order is invalid", func(ctx SpecContext) {
		t := withWaves("waves", "v1.2.0")
		t.components = strings.Replace(t.components, `capstan.dev/apply-order: "-10"`, `capstan.dev/apply-order: soon`, 1)
		w.offer(ctx, t)

		since := time.Now()

		update(ctx, "v1.2.0")
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InstallFailedReason,
			"the annotation capstan.dev/apply-order of Deployment waves/wave-1-gate must be an integer from -32768 to 32767"))
		Expect(written("patch", http.StatusOK, since)).To(BeEmpty())
	})

	It("is uninstalled in reverse order", func(ctx SpecContext) {
		held := &corev1.ConfigMap{}
		held.Namespace, held.Name = "waves", "wave-3-0"
		setFinalizers := func(finalizers string) {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, finalizers))
			Expect(w.client.Patch(ctx, held, patch)).To(Succeed())
		}
		setFinalizers(`["example.com/held"]`)

		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.DeletingReason,
			"ConfigMap waves/wave-3-0 is being deleted, but its finalizers hold it: example.com/held"))
		Expect(versions(ctx)).To(Equal([]string{"0 v1.0.0", "1 v1.0.0", "2 v1.0.0", "3 v1.0.0"}))

		setFinalizers("null")
		Eventually(func() error { return w.client.Get(ctx, client.ObjectKeyFromObject(p), p) }).Should(
			MatchError(ContainSubstring("not found")))
		Expect(written("delete", http.StatusOK, time.Time{})).To(Equal([]int{4, 3, 2, 1, 0}))
	})

	It("becomes ready although its first installation has failed in its third wave", func(ctx SpecContext) {
		t := withWaves("late-waves", "v1.1.1")
		w.offer(ctx, t)

		late := t.resource()
		late.Spec.Release = &v1alpha2.ReleaseSpec{Retries: ptr.To(int32(0))}

		for _, wave := range []int{0, 1, 3} {
			open(ctx, wave, t.version)
		}

		Expect(w.client.Create(ctx, late)).To(Succeed())
		Eventually(w.read(ctx, late)).Should(notBeReady(v1alpha2.ProgressingReason, "wave-2-gate"))

		// Only the third wave has a short time, because a busy machine may be slow with the ones before it.
		Expect(bedtest.Edit(ctx, w.client, late, func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.Release.Timeout = &metav1.Duration{Duration: time.Second}
		})).To(Succeed())
		Eventually(w.read(ctx, late)).Should(beStalled(v1alpha2.TimedOutWaitingForDeploymentReason,
			"wave-2-gate", "failed, given up"))

		open(ctx, 2, t.version)
		Eventually(w.read(ctx, late)).Should(beReady("v1.1.1"))
	})

	It("names what it has dropped until finalizers let it go, after an upgrade and a rollback", func(ctx SpecContext) {
		// Each version has two waves. The second one adds an object with a finalizer, and never becomes healthy.
		good, better, bad := newTiny("dropping", "v1.0.0"), newTiny("dropping", "v1.1.0"), newTiny("dropping", "v1.2.0")
		first := func(name, finalizers string) string {
			return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: dropping-system, "+
				"annotations: {capstan.dev/apply-order: \"-1\"}, finalizers: [%s]}\n", name, finalizers)
		}
		kept := first("kept", "")
		good.components += kept + first("old", "example.com/held")
		better.components += kept
		bad.components = strings.Replace(bad.components, "registry.example.com/", "registry.example.com/never-pulled/", 1) +
			kept + first("brought", "example.com/held")

		for _, t := range []tiny{good, better, bad} {
			w.offer(ctx, t)
		}

		dropping := good.resource()
		letGo := func(name string) {
			w.run(ctx, "kubectl", "patch", "configmap", name, "-n", "dropping", "--type=merge", "-p",
				`{"metadata":{"finalizers":null}}`)
		}
		held := func(name string) string {
			return "no longer part of the release: ConfigMap dropping/" + name + " is being deleted, but its finalizers hold " +
				"it: example.com/held; the program that added a finalizer has to remove it"
		}

		Expect(w.client.Create(ctx, dropping)).To(Succeed())
		Eventually(w.read(ctx, dropping)).Should(beReady(good.version))

		Expect(bedtest.Edit(ctx, w.client, dropping, func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.Version = better.version
		})).To(Succeed())
		Eventually(w.read(ctx, dropping)).Should(
			And(beReady(better.version), beReadyWith(v1alpha2.HealthyReason, held("old"))))
		letGo("old")
		Eventually(w.read(ctx, dropping)).Should(And(
			beReady(better.version), Not(beReadyWith(v1alpha2.HealthyReason, "no longer part of the release"))))

		Expect(bedtest.Edit(ctx, w.client, dropping, func(p *v1alpha2.InfrastructureProvider) {
			p.Spec.Version = bad.version
			p.Spec.Release = &v1alpha2.ReleaseSpec{
				Timeout: &metav1.Duration{Duration: 5 * time.Second}, Retries: ptr.To(int32(0)),
			}
		})).To(Succeed())
		Eventually(w.read(ctx, dropping)).Should(beStalled(v1alpha2.TimedOutWaitingForDeploymentReason,
			"v1.1.0 runs; v1.2.0 failed", held("brought")))
		letGo("brought")
		Eventually(w.read(ctx, dropping)).Should(And(
			beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "v1.1.0 runs; v1.2.0 failed"),
			Not(beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "no longer part of the release"))))
	})

	It("is applied by kubectl from a plain helm template", func(ctx SpecContext) {
		t := withWaves("plain-waves", "v1.0.0")
		provider := bundle.Provider{Type: "InfrastructureProvider", Name: t.name, Label: "infrastructure-" + t.name}
		built, err := chartgen.Build(&bundle.Bundle{
			Provider: provider, Version: t.version, Components: []byte(t.components), Metadata: []byte(t.metadata),
		})
		Expect(err).NotTo(HaveOccurred())
		archive, err := built.Archive()
		Expect(err).NotTo(HaveOccurred())

		dir := GinkgoT().TempDir()
		chart, manifest := filepath.Join(dir, built.Filename()), filepath.Join(dir, "manifest.yaml")
		Expect(os.WriteFile(chart, archive, 0o600)).To(Succeed())
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())

		rendered := w.run(ctx, "helm", "template", "plain", chart, "-n", t.name, "--include-crds")
		Expect(os.WriteFile(manifest, []byte(rendered), 0o600)).To(Succeed())
		w.run(ctx, "kubectl", "apply", "-n", t.name, "-f", manifest)

		var list struct{ Items []json.RawMessage }
		Expect(json.Unmarshal(
			[]byte(w.run(ctx, "kubectl", "get", "configmaps,deployments", "-n", t.name, "-o", "json")), &list)).To(Succeed())
		Expect(len(list.Items)).To(BeNumerically(">=", 4*8+1))
	})
})

// waveOf returns the wave of an object by its name; false if it is part of none.
func waveOf(name string) (int, bool) {
	var wave int

	_, err := fmt.Sscanf(name, "wave-%d-", &wave)

	return wave, err == nil
}
