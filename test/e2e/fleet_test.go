package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// fleetLabels are the providers of a fleet, core last, which is the order of their manifests.
var fleetLabels = []string{"bootstrap-first", "control-plane-second", "infrastructure-third", "cluster-api"}

// fleetMetadata declares the contracts of the minor versions of all providers of a fleet.
const fleetMetadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta1}
- {major: 1, minor: 1, contract: v1beta2}
- {major: 1, minor: 2, contract: v1beta2}
- {major: 1, minor: 3, contract: v1beta1}
- {major: 1, minor: 4, contract: v1beta2}
- {major: 1, minor: 5, contract: v1beta1}
`

// fleet is a set of small providers, with core, whose versions are changed together.
type fleet struct {
	*world
	resources map[string]v1alpha2.Provider // by label
}

func newFleet(ctx context.Context) *fleet {
	GinkgoHelper()

	f := &fleet{world: sharedWorld(ctx), resources: map[string]v1alpha2.Provider{}}
	f.withoutCore(ctx)

	return f
}

// release returns a version of a provider of the fleet.
func (f *fleet) release(label, version string) *harness.Release {
	providerType, name := v1alpha2.ParseLabel(label)
	object := strings.ReplaceAll(label, "-", "")
	release := harness.Small(providerType, client.ObjectKey{Namespace: label, Name: name}, object, version)
	release.Bundle.Metadata = []byte(fleetMetadata)

	return release
}

// ask asks for one version of all providers, or for others of some of them, in one `kubectl apply`. It returns the time
// from the first to the last change.
func (f *fleet) ask(ctx context.Context, version string, others map[string]*harness.Release) (took time.Duration) {
	GinkgoHelper()

	var providers []v1alpha2.Provider

	for _, label := range fleetLabels {
		release := others[label]
		if release == nil {
			release = f.release(label, version)
		}

		Expect(release.Prepare(ctx, f.client)).To(Succeed())

		p := release.Resource()
		p.GetSpec().Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 5 * time.Second}}
		f.resources[label] = p
		providers = append(providers, p)
	}

	return f.applyTogether(ctx, providers)
}

// applyTogether applies resources in one `kubectl apply`. It returns the time from the first to the last change.
func (w *world) applyTogether(ctx context.Context, providers []v1alpha2.Provider) (took time.Duration) {
	GinkgoHelper()

	var manifests strings.Builder

	for _, p := range providers {
		spec, err := json.Marshal(p.GetSpec())
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&manifests, "---\napiVersion: %s\nkind: %s\nmetadata: {namespace: %s, name: %s}\nspec: %s\n",
			v1alpha2.GroupVersion, p.ProviderType(), p.GetNamespace(), p.GetName(), spec)
	}

	cmd := w.bed.Command(ctx, "kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests.String())
	cmd.Stderr = GinkgoWriter
	out, err := cmd.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(cmd.Start()).To(Succeed())

	var first time.Time

	for lines := bufio.NewScanner(out); lines.Scan(); took = time.Since(first) {
		if first.IsZero() {
			first = time.Now()
		}
	}

	Expect(cmd.Wait()).To(Succeed())

	return took
}

// isOneChange reports whether changes came so close together that the operator must know of all of them before it acts
// on one: it waits half a second for a change of core. If they did not, it adds that to the report.
func isOneChange(took time.Duration) bool {
	if took <= 300*time.Millisecond {
		return true
	}

	AddReportEntry("The order was not checked, because kubectl was too slow", took)

	return false
}

// expect waits until all providers are ready with the version.
func (f *fleet) expect(ctx context.Context, version string) {
	GinkgoHelper()

	for _, label := range fleetLabels {
		Eventually(f.read(ctx, f.resources[label])).Should(beReady(version), label)
	}
}

// observeOrder watches the Deployments of the providers with these labels. The function that it returns ends that and
// reports in which order, by label, they asked for an image of one of the versions, and which had no available replica
// for a moment.
func (w *world) observeOrder(
	ctx context.Context, labels []string, versions ...string,
) func() (order, outages []string) {
	GinkgoHelper()

	watcher, err := client.NewWithWatch(w.bed.Config(), client.Options{Scheme: w.client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	events, err := watcher.Watch(ctx, &appsv1.DeploymentList{}, client.HasLabels{v1alpha2.ClusterctlProviderLabel})
	Expect(err).NotTo(HaveOccurred())

	var (
		group          sync.WaitGroup
		order, outages []string
	)

	changed := map[string]bool{}

	group.Go(func() {
		for event := range events.ResultChan() {
			d, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}

			label := d.Labels[v1alpha2.ClusterctlProviderLabel]
			if !slices.Contains(labels, label) {
				continue
			}

			if d.Status.AvailableReplicas == 0 {
				outages = append(outages, label)
			}

			_, tag, _ := strings.Cut(d.Spec.Template.Spec.Containers[0].Image, ":")
			if !changed[label] && slices.Contains(versions, tag) {
				changed[label] = true
				order = append(order, label)
			}
		}
	})

	return func() ([]string, []string) {
		events.Stop()
		group.Wait()

		return order, outages
	}
}

var _ = Describe("Versions of all providers that change in one commit", Ordered, func() {
	var f *fleet

	// crashing returns a version of a provider whose manager crashes.
	crashing := func(label, version string) *harness.Release {
		release := f.release(label, version)
		release.Bundle.Components = []byte(strings.Replace(
			string(release.Bundle.Components), "registry.example.com/", "registry.example.com/crashes-", 1))

		return release
	}

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx)
		f.ask(ctx, "v1.0.0", nil)
		f.expect(ctx, "v1.0.0")
	})

	DescribeTable("converge without an outage",
		func(ctx SpecContext, version, coreIs string) {
			observed := f.observeOrder(ctx, fleetLabels, version)
			took := f.ask(ctx, version, nil)
			f.expect(ctx, version)

			order, outages := observed()
			Expect(outages).To(BeEmpty())
			Expect(order).To(ConsistOf(fleetLabels))

			if coreIs == "first" && !isOneChange(took) {
				return
			}

			position := map[string]int{"first": 0, "last": len(order) - 1}[coreIs]
			Expect(order[position]).To(Equal("cluster-api"), "core is %s in %v", coreIs, order)
		},
		Entry("with a core of a wider contract", "v1.1.0", "first"),
		Entry("with the same contract", "v1.2.0", "first"),
		Entry("with a core of a narrower contract", "v1.3.0", "last"),
	)

	It("leave everything running if one of them fails, and converge once it is corrected", func(ctx SpecContext) {
		f.ask(ctx, "v1.4.0", nil)
		f.expect(ctx, "v1.4.0")

		const third = "infrastructure-third"

		observed := f.observeOrder(ctx, fleetLabels, "v1.5.0")
		f.ask(ctx, "v1.5.0", map[string]*harness.Release{third: crashing(third, "v1.5.0")})

		core := f.resources["cluster-api"]
		Eventually(f.read(ctx, core)).Should(notBeReady(v1alpha2.CAPIVersionIncompatibilityReason,
			"InfrastructureProvider infrastructure-third/third has v1beta2; its change from v1.4.0 to v1.5.0 has not succeeded",
			"v1.4.0 runs; v1.5.0 is not applied"))
		Eventually(f.read(ctx, f.resources[third])).Should(
			notBeReady(v1alpha2.TimedOutWaitingForDeploymentReason, "v1.4.0 runs; v1.5.0 failed"))

		for _, label := range []string{"bootstrap-first", "control-plane-second"} {
			Eventually(f.read(ctx, f.resources[label])).Should(beReady("v1.5.0"))
		}

		f.ask(ctx, "v1.5.0", map[string]*harness.Release{third: f.release(third, "v1.5.1")})

		for _, label := range fleetLabels {
			Eventually(f.read(ctx, f.resources[label])).Should(beReady(f.resources[label].GetSpec().Version))
		}

		_, outages := observed()
		Expect(outages).To(BeEmpty())
	})

	It("converge although the operator is killed all the time", func(ctx SpecContext) {
		const crashes = 10

		// To a wider contract, and to a narrower one.
		for _, version := range []string{"v1.4.1", "v1.5.2"} {
			observed := f.observeOrder(ctx, fleetLabels, version)
			f.ask(ctx, version, nil)

			for range crashes {
				killAfter(ctx, f.world, rand.N(400*time.Millisecond))
				f.start()
			}

			f.expect(ctx, version)

			_, outages := observed()
			Expect(outages).To(BeEmpty())
		}
	})
})
