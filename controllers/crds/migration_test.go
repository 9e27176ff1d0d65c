package crds

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/capstan-project/capstan/test/bed"
)

// kind is a CRD with its objects.
type kind struct {
	name    string
	objects dynamic.Interface
}

func newKind(name string) kind {
	GinkgoHelper()

	objects, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())

	return kind{name: name, objects: objects}
}

// define applies the CRD with versions, of which the first is the storage version, and waits until
// the cache has it.
func (k kind) define(ctx context.Context, versions ...string) {
	GinkgoHelper()

	file := fileOf(definitionOf(k.name, versions...))
	plan, err := applier.Plan(ctx, wants(file))
	Expect(err).NotTo(HaveOccurred())
	Expect(applier.Apply(ctx, plan)).To(HaveLen(1))
	served(ctx, file)
	k.caughtUp(ctx)
}

// caughtUp waits until the cache has the current CRD.
func (k kind) caughtUp(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		seen, err := applier.getCached(ctx, k.crd())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(seen.ResourceVersion).To(Equal(read(ctx, k.crd()).ResourceVersion))
	}).Should(Succeed())
}

func (k kind) crd() string { return k.name + "s.example.com" }

func (k kind) in(version string) dynamic.ResourceInterface {
	return k.objects.Resource(schema.GroupVersionResource{Group: "example.com", Version: version, Resource: k.name + "s"}).
		Namespace("default")
}

// create applies objects in a version, as a GitOps tool would.
func (k kind) create(ctx context.Context, version string, from, to int) {
	GinkgoHelper()

	var group errgroup.Group
	group.SetLimit(16)

	for i := from; i < to; i++ {
		group.Go(func() error { return k.applyObject(ctx, version, i) })
	}

	Expect(group.Wait()).To(Succeed())
}

func (k kind) applyObject(ctx context.Context, version string, i int) error {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"number": int64(i)}}}
	o.SetAPIVersion("example.com/" + version)
	o.SetKind(k.name)
	o.SetName(fmt.Sprintf("object-%04d", i))
	o.SetFinalizers([]string{"example.com/kept"})
	_, err := k.in(version).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "gitops", Force: true})

	return err
}

// all returns the objects' specs and finalizers, by name. It polls, because a new version is not served
// at once.
func (k kind) all(ctx context.Context, version string) (found map[string]string) {
	GinkgoHelper()
	Eventually(func() (err error) {
		found, err = k.list(ctx, version)()
		return err
	}).Should(Succeed())

	return found
}

// list returns the function for all that can be polled.
func (k kind) list(ctx context.Context, version string) func() (map[string]string, error) {
	return func() (map[string]string, error) {
		list, err := k.in(version).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}

		found := map[string]string{}
		for _, o := range list.Items {
			found[o.GetName()] = fmt.Sprint(o.Object["spec"], o.GetFinalizers())
		}

		return found, nil
	}
}

// migrateAfterRollout rewrites all objects as the reconciler of a healthy provider does, and returns
// how many calls it took.
func (k kind) migrateAfterRollout(ctx context.Context, r Request) (rounds int) {
	GinkgoHelper()

	for ; ; rounds++ {
		k.caughtUp(ctx)
		plan, err := applier.Plan(ctx, r)
		Expect(err).NotTo(HaveOccurred())

		names, _ := plan.PendingMigrations()
		if len(names) == 0 {
			return rounds
		}

		Expect(names).To(Equal([]string{k.crd()}))

		_, err = applier.MigrateAfterRollout(ctx, plan, names)
		Expect(err).NotTo(HaveOccurred())
	}
}

func storedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	return crd.Status.StoredVersions
}

var _ = Describe("A migration", func() {
	It("reads no schemas to check the removal of a version that has no objects", func(ctx SpecContext) {
		k := newKind("cz")
		k.define(ctx, "v1", "v1alpha1")

		plan, err := applier.Plan(ctx, wants(fileOf(definitionOf(k.name, "v1"))))
		Expect(err).NotTo(HaveOccurred())

		clients := applier.Clients
		clients.APIReader = nil
		report, err := applier.WithClients(clients).CheckChanges(ctx, plan, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Refused()).To(BeFalse())
	})

	It("rewrites objects before their version is removed, while managers know it", func(ctx SpecContext) {
		k := newKind("da")
		k.define(ctx, "v1alpha1")
		k.create(ctx, "v1alpha1", 0, 20)
		k.define(ctx, "v1", "v1alpha1")
		before := k.all(ctx, "v1")
		Expect(read(ctx, k.crd())).To(WithTransform(storedVersions, ConsistOf("v1alpha1", "v1")))

		plan, err := applier.Plan(ctx, wants(fileOf(definitionOf(k.name, "v1"))))
		Expect(err).NotTo(HaveOccurred())
		Expect(applier.MigrateBeforeApply(ctx, plan)).To(Equal(&Progress{CRD: k.crd(), Done: 20, Total: 20}))
		Expect(applier.MigrateBeforeApply(ctx, plan)).To(BeNil())
		Expect(read(ctx, k.crd())).To(WithTransform(storedVersions, Equal([]string{"v1"})))

		refused := func(plan *Plan) bool {
			GinkgoHelper()

			report, err := applier.CheckChanges(ctx, plan, nil)
			Expect(err).NotTo(HaveOccurred())

			return report.Refused()
		}
		Expect(refused(plan)).To(BeFalse())

		By("not rewriting them again because they do not fit the schema")

		breaking := definitionOf(k.name, "v1")
		breaking.Spec.Versions[0].Schema.OpenAPIV3Schema.Required = []string{"status"}
		another, err := applier.Plan(ctx, wants(fileOf(breaking)))
		Expect(err).NotTo(HaveOccurred())
		Expect(refused(another)).To(BeTrue())
		Expect(applier.MigrateBeforeApply(ctx, another)).To(BeNil())

		By("rewriting them again after a client has used the version")
		Expect(k.applyObject(ctx, "v1alpha1", 7)).To(Succeed())
		k.caughtUp(ctx)

		plan, err = applier.Plan(ctx, wants(fileOf(definitionOf(k.name, "v1"))))
		Expect(err).NotTo(HaveOccurred())
		Expect(applier.MigrateBeforeApply(ctx, plan)).To(BeNil(), "it is finished")
		Expect(refused(plan)).To(BeTrue())
		Expect(applier.MigrateBeforeApply(ctx, plan)).NotTo(BeNil())
		Expect(refused(plan)).To(BeFalse())
		Expect(applier.Apply(ctx, plan)).To(HaveLen(1))

		Eventually(func() []apiextensionsv1.CustomResourceDefinitionVersion { return read(ctx, k.crd()).Spec.Versions }).
			Should(HaveLen(1))
		Expect(k.all(ctx, "v1")).To(And(HaveLen(20), Equal(before)))
		Expect(k.applyObject(ctx, "v1", 7)).To(Succeed(), "managedFields name no version that is gone")
	})

	It("keeps the version until the new managers run if the old CRD has no other", func(ctx SpecContext) {
		k := newKind("db")
		k.define(ctx, "v1beta1")
		k.create(ctx, "v1beta1", 0, 20)
		before := k.all(ctx, "v1beta1")

		request := wants(fileOf(definitionOf(k.name, "v1")))
		plan, err := applier.Plan(ctx, request)
		Expect(err).NotTo(HaveOccurred())
		Expect(applier.MigrateBeforeApply(ctx, plan)).To(BeNil())
		Expect(applier.Apply(ctx, plan)).To(HaveLen(1))
		merged := read(ctx, k.crd())
		Expect(merged.Spec.Versions).To(HaveExactElements(
			And(
				HaveField("Name", "v1"),
				HaveField("Storage", true),
			),
			And(HaveField("Name", "v1beta1"), HaveField("Storage", false), HaveField("Served", true)),
		))
		Eventually(k.list(ctx, "v1")).Should(Equal(before))
		k.caughtUp(ctx)
		plan, err = applier.Plan(ctx, request)
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.HasChanges()).To(BeFalse(), "nothing more is sent while the version has to stay")

		k.migrateAfterRollout(ctx, request)
		plan, err = applier.Plan(ctx, request)
		Expect(err).NotTo(HaveOccurred())
		Expect(applier.MigrateBeforeApply(ctx, plan)).To(BeNil())
		Expect(applier.Apply(ctx, plan)).To(HaveLen(1))
		Expect(read(ctx, k.crd()).Spec.Versions).To(HaveLen(1))
		Eventually(k.list(ctx, "v1")).Should(Equal(before))
		Expect(k.applyObject(ctx, "v1", 7)).To(Succeed())
	})

	It("rewrites a page for each call, and begins again after a restart", func(ctx SpecContext) {
		const objects = 2*pageSize + 20

		k := newKind("dc")
		k.define(ctx, "v1beta1")
		k.create(ctx, "v1beta1", 0, objects)
		k.define(ctx, "v1", "v1beta1")
		before := k.all(ctx, "v1")
		request := wants(fileOf(definitionOf(k.name, "v1", "v1beta1")))
		plan, err := applier.Plan(ctx, request)
		Expect(err).NotTo(HaveOccurred())

		pending, tried := plan.PendingMigrations()
		Expect(pending).To(Equal([]string{k.crd()}))
		Expect(tried).To(BeEmpty())

		rewrites := func() []bed.Request {
			found, err := control.Requests(func(r bed.Request) bool {
				return r.Resource == k.name+"s" && strings.Contains(r.URI, "fieldManager="+migrationOwner)
			})
			Expect(err).NotTo(HaveOccurred())

			return found
		}
		first := &Progress{CRD: k.crd(), Done: pageSize, Total: objects}
		Expect(first.String()).To(Equal("migrated 50 of 120 objects of dcs.example.com"))
		Expect(applier.MigrateAfterRollout(ctx, plan, pending)).To(Equal(first))
		Eventually(rewrites).Should(HaveLen(pageSize))

		applier = NewApplier(applier.Clients) // as after a restart

		Expect(applier.MigrateAfterRollout(ctx, plan, pending)).To(Equal(first))
		Expect(k.migrateAfterRollout(ctx, request)).To(Equal(2))
		Expect(applier.MigrateAfterRollout(ctx, plan, pending)).To(BeNil(), "although this plan is old")

		Expect(read(ctx, k.crd())).To(WithTransform(storedVersions, Equal([]string{"v1"})))
		Expect(k.all(ctx, "v1")).To(Equal(before))
		Eventually(rewrites).Should(HaveLen(pageSize+objects), "each object is asked for once after the restart")

		k.define(ctx, "v1") // nothing is lost when the old version is removed

		Eventually(k.list(ctx, "v1")).Should(Equal(before))
	})

	It("does not trim status.storedVersions if the storage version may have changed", func(ctx SpecContext) {
		k := newKind("df")
		k.define(ctx, "v1beta1")
		k.create(ctx, "v1beta1", 0, 1)
		k.define(ctx, "v1", "v1beta1")
		plan, err := applier.Plan(ctx, wants(fileOf(definitionOf(k.name, "v1", "v1beta1"))))
		Expect(err).NotTo(HaveOccurred())

		edit(ctx, k.crd(), func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"f"} })

		_, err = applier.MigrateAfterRollout(ctx, plan, []string{k.crd()})
		Expect(err).To(MatchError(ContainSubstring("the objects of " + k.crd() + " could not be migrated")))
		Expect(read(ctx, k.crd())).To(WithTransform(storedVersions, ConsistOf("v1beta1", "v1")))
	})

	It("is reported to be due for CRDs that the version does not manage", func(ctx SpecContext) {
		k := newKind("de")
		k.define(ctx, "v1beta1")
		k.define(ctx, "v1", "v1beta1")

		due := func(r Request) []string {
			plan, err := applier.Plan(ctx, r)
			Expect(err).NotTo(HaveOccurred())

			return plan.Unmigrated
		}
		unmigrated := ContainElement(k.crd() + " (in v1beta1; applied for v1.1.0)")

		Expect(due(wants(fileOf(definitionOf(k.name, "v1", "v1beta1"))))).NotTo(unmigrated, "the version has it")
		Expect(due(wants())).To(unmigrated, "the version does not include it")

		older := wants(fileOf(definitionOf(k.name, "v1beta1")))
		older.Version = "v0.9.0"
		Expect(due(older)).To(unmigrated, "a newer version has applied it")
	})

	It("reports the CRDs that the provider's manager has tried to migrate", func(ctx SpecContext) {
		k := newKind("dd")
		k.define(ctx, "v1beta1")
		k.define(ctx, "v1", "v1beta1")
		edit(ctx, k.crd(), func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Annotations[observedAnnotation] = fmt.Sprint(d.Generation)
		})
		k.caughtUp(ctx)
		plan, err := applier.Plan(ctx, wants(fileOf(definitionOf(k.name, "v1", "v1beta1"))))
		Expect(err).NotTo(HaveOccurred())

		pending, tried := plan.PendingMigrations()
		Expect(pending).To(Equal([]string{k.crd()}))
		Expect(tried).To(Equal(pending))
	})
})

// TestResumeMigration checks which migrations are continued, and which begin again.
func TestResumeMigration(t *testing.T) {
	const old, present = "1", "2" // resource versions

	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.UID, crd.Generation, crd.ResourceVersion = "a", 3, present

	trimmed := task{retired: []string{"v1alpha1", "v1beta1"}, successor: "v1"}
	wanted := trimmed
	wanted.from = []string{"v1beta1"}

	begun := migration{}.resume(crd, wanted)
	begun.next, begun.done = "x", 200
	finished := func(version string) migration {
		m := begun
		m.next, m.finished = "", version

		return m
	}

	for name, c := range map[string]struct {
		last    migration
		task    task
		change  func(*apiextensionsv1.CustomResourceDefinition)
		resumes bool
	}{
		"nothing known": {task: wanted},
		"the same":      {last: begun, task: wanted, resumes: true},
		"finished":      {last: finished(old), task: trimmed, resumes: true},
		"finished, which the cache does not show yet":   {last: finished(present), task: wanted, resumes: true},
		"finished, but stored in the old version again": {last: finished(old), task: wanted},
		"more to retire": {last: begun, task: task{
			from: wanted.from, retired: []string{"v1alpha1", "v1alpha2", "v1beta1"}, successor: "v1",
		}},
		"of another generation": {last: begun, task: wanted, change: func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Generation++
		}},
		"of a CRD that was deleted": {last: begun, task: wanted, change: func(d *apiextensionsv1.CustomResourceDefinition) {
			d.UID = "b"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			live := crd.DeepCopy()
			if c.change != nil {
				c.change(live)
			}

			m := c.last.resume(live, c.task)
			if c.resumes {
				g.Expect(m).To(Equal(c.last))
				return
			}

			g.Expect(m).To(Equal(migration{}.resume(live, c.task)))
		})
	}
}
