// Package e2e contains the scenarios: the real operator on real control planes, observed through
// the API server and the helm programs.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/harness/suite"
	"github.com/capstan-project/capstan/test/testproviders"
)

// root is the module's root.
const root = "../.."

var (
	// program is the path of the operator, which is built once.
	program string
	// programs is a folder of this process for others.
	programs string
)

func TestScenarios(t *testing.T) {
	SetDefaultConsistentlyPollingInterval(200 * time.Millisecond)
	suite.Suite{Name: "Scenarios", Patience: 3 * time.Minute}.Run(t)
}

// The suite may run in several processes; the first one builds for all of them.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	built, err := harness.Program(ctx, root, GinkgoT().TempDir(), harness.OperatorProgram)
	Expect(err).NotTo(HaveOccurred())

	return []byte(built)
}, func(built []byte) { program, programs = string(built), GinkgoT().TempDir() })

var _ = AfterSuite(func() {
	if shared != nil {
		Expect(shared.operator.Stop()).To(Succeed())
		Expect(shared.bed.Stop()).To(Succeed())
	}
})

// everyKubernetes labels the scenarios that `make kubernetes-versions` repeats with other versions of Kubernetes.
var everyKubernetes = Label("kubernetes")

// world is a control plane with the operator's CRDs, and usually with an operator.
type world struct {
	bed      *bed.Bed
	client   client.Client
	operator *harness.Operator
	flags    []string // of the operator
	log      string

	// names of what a shared world keeps: its own namespaces and CRDs, and the namespaces of containers that have ended
	seen map[string]bool
}

// worlds are the control planes of the container of specs that is running.
var worlds []*world

// The end of the operators' logs goes into the report of a spec that failed.
var _ = AfterEach(func() {
	if CurrentSpecReport().Failed() {
		for _, w := range worlds {
			w.showLog()
			w.showProviders()
		}
	}
})

// newWorld starts a control plane without an operator. It is stopped at the end of the container of
// specs whose BeforeAll calls newWorld.
func newWorld(apiServerFlags ...string) *world {
	GinkgoHelper()

	return emptyWorld(bed.Options{APIServerFlags: apiServerFlags, CRDs: harness.OwnCRDs()})
}

// emptyWorld is newWorld without the operator's CRDs.
func emptyWorld(options bed.Options) *world {
	GinkgoHelper()

	w := &world{log: filepath.Join(GinkgoT().TempDir(), "operator.log")}
	w.bed = bedtest.Start(GinkgoT(), options)

	worlds = append(worlds, w)

	DeferCleanup(func() {
		worlds = slices.DeleteFunc(worlds, func(other *world) bool { return other == w })

		if w.operator != nil {
			Expect(w.operator.Stop()).To(Succeed())
		}
	})

	var err error

	w.client, err = harness.NewClient(w.bed.Config())
	Expect(err).NotTo(HaveOccurred())

	return w
}

// shared is the world of sharedWorld, once there is one.
var (
	shared    *world
	sharedBed = bedtest.Shared{Options: func() bed.Options { return bed.Options{CRDs: harness.OwnCRDs()} }}
)

// sharedWorld returns a control plane with core and an operator with these flags, which containers of a process share.
// Use it in containers that do not change core or cluster-wide objects, assert nothing about the whole cluster, and
// whose providers have unique names; they may restart the operator. At the end of a container, its resources and CRDs
// are deleted, so that later containers neither reconcile them nor wait for the API server to publish their schemas.
func sharedWorld(ctx context.Context, flags ...string) *world {
	GinkgoHelper()

	if shared == nil {
		w := &world{log: filepath.Join(programs, "operator.log"), bed: sharedBed.Get(GinkgoT())}
		w.client = must(harness.NewClient(w.bed.Config()))
		w.start()
		w.installCore(ctx)

		shared = w
		w.seen = map[string]bool{}

		for _, list := range []client.ObjectList{&corev1.NamespaceList{}, &apiextensionsv1.CustomResourceDefinitionList{}} {
			for _, name := range w.newNames(ctx, list) {
				w.seen[name] = true
			}
		}
	}

	w := shared

	worlds = append(worlds, w)

	if len(flags) > 0 {
		w.restart(flags...)
	}

	DeferCleanup(func(ctx SpecContext) {
		worlds = slices.DeleteFunc(worlds, func(other *world) bool { return other == w })

		w.dropProviders(ctx)

		for _, name := range w.newNames(ctx, &apiextensionsv1.CustomResourceDefinitionList{}) {
			definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: named("", name)}
			Expect(client.IgnoreNotFound(w.client.Delete(ctx, definition))).To(Succeed())
		}

		for _, name := range w.newNames(ctx, &corev1.NamespaceList{}) {
			w.seen[name] = true

			AddReportEntry(namespaceEntry, name, ReportEntryVisibilityNever)
		}

		if len(w.flags) > 0 {
			w.restart()
		}
	})

	return w
}

// namespaceEntry is the name of the report entries with namespaces that a container has created in a shared world.
const namespaceEntry = "namespace"

// Which containers share a world depends on the number of processes and on the order.
var _ = ReportAfterSuite("Containers that share a world have namespaces of their own", func(report Report) {
	creators := map[string]string{}

	for _, spec := range report.SpecReports {
		for _, entry := range spec.ReportEntries {
			if entry.Name != namespaceEntry {
				continue
			}

			container := spec.ContainerHierarchyLocations[0].String()
			Expect(creators).NotTo(HaveKey(entry.StringRepresentation()), container)

			creators[entry.StringRepresentation()] = container
		}
	}
})

// newNames returns the names of a list of objects, but for those that w has seen.
func (w *world) newNames(ctx context.Context, list client.ObjectList) []string {
	GinkgoHelper()
	Expect(w.client.List(ctx, list)).To(Succeed())

	var names []string

	Expect(meta.EachListItem(list, func(o runtime.Object) error {
		if name := o.(client.Object).GetName(); !w.seen[name] {
			names = append(names, name)
		}

		return nil
	})).To(Succeed())

	return names
}

// withoutCore removes core until the end of the container, which may install another one meanwhile.
func (w *world) withoutCore(ctx context.Context) {
	GinkgoHelper()
	w.removeCore(ctx)

	DeferCleanup(func(ctx SpecContext) {
		w.dropProviders(ctx)
		w.removeCore(ctx)
		w.installCore(ctx)
	})
}

// removeCore uninstalls core, and removes the versions of it that are available.
func (w *world) removeCore(ctx context.Context) {
	GinkgoHelper()

	list := &v1alpha2.CoreProviderList{}
	Expect(w.client.List(ctx, list)).To(Succeed())

	for i := range list.Items {
		core := &list.Items[i]
		Expect(client.IgnoreNotFound(w.client.Delete(ctx, core))).To(Succeed())
		Eventually(gone(ctx, w, core)).Should(BeTrue())
		Expect(w.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(core.Namespace),
			client.HasLabels{v1alpha2.ConfigMapVersionLabel})).To(Succeed())
	}
}

// dropProviders deletes all resources but core, and leaves what they have installed.
func (w *world) dropProviders(ctx context.Context) {
	GinkgoHelper()

	var providers []v1alpha2.Provider

	for _, t := range v1alpha2.ProviderTypes() {
		if t == v1alpha2.CoreProviderType {
			continue
		}

		list := t.NewList()
		Expect(w.client.List(ctx, list)).To(Succeed())

		providers = append(providers, list.GetItems()...)
	}

	for _, p := range providers {
		Expect(client.IgnoreNotFound(w.client.Delete(ctx, p))).To(Succeed())

		// The operator uninstalls as long as there is a finalizer.
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(client.IgnoreNotFound(w.client.Patch(ctx, p, patch))).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	}
}

// readyWorld starts a control plane and an operator with these flags, and installs core.
func readyWorld(ctx context.Context, flags ...string) *world {
	GinkgoHelper()

	w := newWorld()
	w.start(flags...)
	w.installCore(ctx)

	return w
}

// installCore installs core and waits until it is ready.
func (w *world) installCore(ctx context.Context) {
	GinkgoHelper()

	core := w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
	Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
}

// start starts the operator.
func (w *world) start(flags ...string) {
	GinkgoHelper()
	w.startProgram(program, flags...)
}

// startProgram starts the operator of a build.
func (w *world) startProgram(program string, flags ...string) {
	GinkgoHelper()

	var err error

	w.operator, err = harness.StartOperator(w.bed, program, w.log, flags...)
	Expect(err).NotTo(HaveOccurred())

	w.flags = flags
}

// restart starts the operator again, with these flags.
func (w *world) restart(flags ...string) {
	GinkgoHelper()
	Expect(w.operator.Stop()).To(Succeed())
	w.start(flags...)
}

// install loads a provider's release from a local repository and creates its resource.
func (w *world) install(ctx context.Context, repository string, wanted harness.Wanted) v1alpha2.Provider {
	GinkgoHelper()

	release, err := harness.Load(ctx, repository, wanted)
	Expect(err).NotTo(HaveOccurred())
	p, err := release.Install(ctx, w.client)
	Expect(err).NotTo(HaveOccurred())

	return p
}

// showLog adds the end of the operator's log to the report of the spec.
func (w *world) showLog() {
	data, err := os.ReadFile(w.log)
	if err != nil {
		return // no operator was started
	}

	lines := slices.Collect(strings.Lines(string(data)))
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"msg":"Starting `) })
	AddReportEntry("operator log", strings.Join(lines[max(0, len(lines)-60):], ""))
}

// showProviders adds the status of all provider resources and Deployments to the report of the spec.
func (w *world) showProviders() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := w.client.List(ctx, list); err != nil {
			return // the control plane has stopped
		}

		for _, p := range list.GetItems() {
			AddReportEntry(fmt.Sprintf("status of %s %s", t, client.ObjectKeyFromObject(p)), *p.GetStatus())
		}
	}

	deployments := &appsv1.DeploymentList{}
	if err := w.client.List(ctx, deployments); err != nil {
		return
	}

	for _, d := range deployments.Items {
		AddReportEntry("status of Deployment "+client.ObjectKeyFromObject(&d).String(), d.Status)
	}
}

// The time for which scenarios check that nothing happens. For the idle operator, they wait until
// writes have settled, and then long enough for every periodic task to run once.
const (
	quietPeriod = time.Second
	idleSettle  = 3 * time.Second
	idleWatch   = 20 * time.Second
)

// helmInterval is for polling with a helm program, which would otherwise keep a processor busy.
const helmInterval = 500 * time.Millisecond

// samples is the project's own local repository.
var samples = filepath.Join(root, testproviders.Samples)
