package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	. "github.com/onsi/gomega"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// forgedAttempts forge what decisions depend on: records that were confirmed once, statuses, sources, and what looks
// like other installations. If no developer does that, an administrator does, as without the admission policies.
var forgedAttempts = []attempt{
	{"The records of newer revisions are deleted, so that an old one is the newest", func(a *arena) string {
		s := a.upgradedSite()
		return s.meanwhile(s.returnToFirst)
	}},
	{"The content of an old record in place of that of the newest one", func(a *arena) string {
		s := a.upgradedSite()
		second := changed(s, s.before, func(r *helmrelease.Release) { r.Version = 2 })

		return s.meanwhile(func() {
			newest := s.recordAt(2)
			newest.Data = second.Data
			a.Expect(a.admin.Update(a.ctx, newest)).To(Succeed())
		})
	}},
	{"A record that names another namespace", func(a *arena) string {
		s := a.readSite()
		note := note("prey-"+s.name, "", "the developer's")
		s.plant(changed(s, s.record(2, "deployed", note), func(r *helmrelease.Release) { r.Namespace = victim }))

		return s.settle() + "; then " + s.remove()
	}},
	{"The ConfigMap of the stored chart, beside the provider and with another chart", func(a *arena) string {
		s := a.readSite()
		forged := &corev1.ConfigMap{ObjectMeta: named(s.home.namespace, s.name)}
		a.neverBecomes(forged, func(data map[string]string) bool { return data["of"] != "" })

		s.plantChart()

		return s.change(`{"paused":true}`)
	}},
	{"A status with a planted record, by a developer whose Role has all statuses", func(a *arena) string {
		s := a.readSite()
		record := s.copied(2, s.record(2, "deployed", s.kept()))
		s.provide(record)

		p := s.home.resource()
		a.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		p.Status.History = append([]v1alpha2.ReleaseRevision{{Number: 2, Digest: s.digestOf(record)}}, p.Status.History...)

		return s.writeStatus(s.statusWriter(), p.Status) + s.settle()
	}},
	{"A status that says that another user's provider is installed here, by such a developer", func(a *arena) string {
		s := a.site()
		s.start(s.stuck)

		p := s.home.resource()
		a.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		p.Status.Release = &v1alpha2.ReleaseStatus{Name: "infrastructure-" + a.name, Namespace: p.Namespace, Revision: 1}
		refused := s.writeStatus(s.statusWriter(), p.Status)

		ours := small{victim, a.name, "v1.0.0", ""}
		a.provide(ours.configMap(), ours.resource())
		a.Expect(a.outcome(ours.resource())).To(HavePrefix(v1alpha2.HealthyReason))

		return refused + "; the victim's provider is installed"
	}},
	{"An item of clusterctl's inventory that claims another user's provider", func(a *arena) string {
		return a.overruled(a.item())
	}},
	{"A pod that looks like cluster-api-operator, whose resources are taken over", func(a *arena) string {
		a.provide(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: tenant, Name: a.name, Labels: map[string]string{"clusterctl.cluster.x-k8s.io/core": "capi-operator"},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/x"}}},
		})

		return a.overruledFor(func(p v1alpha2.Provider) { p.SetFinalizers([]string{"provider.cluster.x-k8s.io"}) })
	}},
	{"An older resource of the name that another user's provider depends on, which is never installed",
		func(a *arena) string {
			bogus := small{tenant, a.name + "-base", "v1.0.0", ""}.by("installer")
			bogus.Spec.FetchConfig = &v1alpha2.FetchConfiguration{URL: "https://sources.invalid/x/v1.0.0/components.yaml"}
			a.create(bogus)
			a.outcome(bogus)

			base := small{victim, a.name + "-base", "v1.0.0", ""}
			dependent := small{victim, a.name, "v1.0.0", ""}
			p := dependent.resource()
			p.Spec.DependsOn = []string{"infrastructure-" + base.name}
			a.provide(base.configMap(), base.resource(), dependent.configMap(), p)
			a.Eventually(a.installed(p)).Should(Equal("v1.0.0"))

			return "the provider of the victim is installed"
		}},
	{"An object of another release with the mark of one that the provider has orphaned", func(a *arena) string {
		return a.takenWith("", map[string]string{v1alpha2.OrphanedByAnnotation: tenant + "/infrastructure-" + a.name})
	}},
}

// upgraded is a site whose provider had the ConfigMap grade with the text old, and has it with the text new.
type upgraded struct {
	*site

	// before is the record of the first revision, and status that of the resource at that time.
	before *corev1.Secret
	status v1alpha2.ProviderStatus
}

// readSite returns a site with an installed provider, whose record the developer has read.
func (a *arena) readSite() *site {
	a.Helper()

	s := a.site()
	s.installAndRead()

	return s
}

// upgradedSite returns a site whose provider was upgraded. It must never be as it was before.
func (a *arena) upgradedSite() *upgraded {
	a.Helper()

	s := &upgraded{site: a.site()}
	grade := func(text string) string { return "---\n" + note(s.grade().Name, s.home.namespace, text) }

	s.home.extra = grade("old")
	s.installAndRead()
	s.before = s.recordAt(1)

	p := s.home.resource()
	a.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
	s.status = p.Status

	s.home.version, s.home.extra = "v1.0.1", grade("new")
	s.provide(s.home.configMap())
	a.Expect(s.change(`{"version":"v1.0.1"}`)).To(HavePrefix(v1alpha2.HealthyReason))

	a.neverBecomes(s.grade(), func(data map[string]string) bool {
		return data["text"] != "new"
	})

	return s
}

// returnToFirst deletes the newer record, and makes the first one as it was when it was deployed.
func (s *upgraded) returnToFirst() {
	s.Helper()

	first := s.recordAt(1)
	first.Data, first.Labels = s.before.Data, s.before.Labels
	s.Expect(s.admin.Update(s.ctx, first)).To(Succeed())
	s.Expect(s.admin.Delete(s.ctx, s.recordAt(2))).To(Succeed())
}

// meanwhile is whileSuspended, and has all objects of the provider compared afterwards.
func (s *upgraded) meanwhile(do func()) string {
	s.Helper()

	return s.whileSuspended(func() {
		do()

		touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
		s.Expect(s.admin.Patch(s.ctx, s.grade(), touch)).To(Succeed())
	})
}

// whileSuspended does something while the provider is suspended. It returns the operator's answer when it no longer is.
func (s *site) whileSuspended(do func()) string {
	s.Helper()

	p := s.home.resource()
	suspend := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))
	s.Expect(s.admin.Patch(s.ctx, p, suspend)).To(Succeed())
	s.outcome(p)
	do()

	return s.change(`{"suspend":false}`)
}

// grade is the ConfigMap that the versions of the provider have in common.
func (s *site) grade() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: named(s.home.namespace, "grade-"+s.name)}
}

// recordAt returns the record of a revision.
func (s *site) recordAt(revision int) *corev1.Secret {
	s.Helper()

	record := &corev1.Secret{}
	key := client.ObjectKeyFromObject(s.record(revision, "deployed", ""))
	s.Expect(s.admin.Get(s.ctx, key, record)).To(Succeed())

	return record
}

// plant creates the record of a revision with the labels of one that the operator has written.
func (s *site) plant(record *corev1.Secret) { s.replant(2, record, s.copied(2, record).Labels) }

// replant creates the record of a revision with the content of another one, and labels.
func (s *site) replant(revision int, content *corev1.Secret, labels map[string]string) {
	s.Helper()

	planted := s.record(revision, "deployed", "")
	planted.Data, planted.Labels = content.Data, maps.Clone(labels)
	planted.Labels["version"], planted.Labels[storage.RevisionLabel] = strconv.Itoa(revision), strconv.Itoa(revision)
	s.provide(planted)
}

// changed changes what is in a record.
func changed(g Gomega, record *corev1.Secret, change func(*helmrelease.Release)) *corev1.Secret {
	content := contentOf(g, record)
	change(content)

	text, err := json.Marshal(content)
	g.Expect(err).NotTo(HaveOccurred())

	record = record.DeepCopy()
	record.Data["release"] = encoded(compress(text))

	return record
}

// contentOf returns what is in a record.
func contentOf(g Gomega, record *corev1.Secret) *helmrelease.Release {
	content := &helmrelease.Release{}
	g.Expect(json.Unmarshal([]byte(unpacked(record.Data["release"])), content)).To(Succeed())

	return content
}

// digestOf returns the digest that confirms a record.
func (s *site) digestOf(record *corev1.Secret) string {
	s.Helper()

	digest, err := storage.Digest(contentOf(s, record))
	s.Expect(err).NotTo(HaveOccurred())

	return digest
}

// statusWriter is the developer, who may write all statuses from now on.
func (s *site) statusWriter() client.Client {
	s.Helper()

	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: s.user}
	s.grant(s.T, s.home.namespace, "status-writer", user, rule("*", []string{"*/status"}, "*"))

	return s.developer
}

// writeStatus writes the status of the provider, and returns how an admission policy refuses it; empty if none does.
func (s *site) writeStatus(as client.Client, status v1alpha2.ProviderStatus) string {
	s.Helper()

	patch, err := json.Marshal(map[string]any{"status": status})
	s.Expect(err).NotTo(HaveOccurred())

	refused := ""

	s.Eventually(func() error {
		err := as.Status().Patch(s.ctx, s.home.resource(), client.RawPatch(types.MergePatchType, patch))
		if err != nil && strings.Contains(err.Error(), "only the operator may write") {
			refused = err.Error()
			return nil
		}

		return err
	}).Should(Succeed(), "the API server knows the permissions")

	return refused
}

// neverBecomes declares that the data of a ConfigMap must not be so from now on, not even for a moment.
func (a *arena) neverBecomes(o *corev1.ConfigMap, bad func(map[string]string) bool) {
	a.Helper()

	only := &client.ListOptions{
		Namespace: o.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Name),
	}
	list := &corev1.ConfigMapList{}
	a.Expect(a.admin.List(a.ctx, list, only)).To(Succeed())

	var happened atomic.Bool

	check := func(found *corev1.ConfigMap) {
		if bad(found.Data) {
			happened.Store(true)
		}
	}

	for i := range list.Items {
		check(&list.Items[i])
	}

	since := *only
	since.Raw = &metav1.ListOptions{ResourceVersion: list.ResourceVersion}

	changes, err := a.admin.Watch(a.ctx, &corev1.ConfigMapList{}, &since)
	a.Expect(err).NotTo(HaveOccurred())
	a.Cleanup(changes.Stop)

	go func() {
		for event := range changes.ResultChan() {
			if found, ok := event.Object.(*corev1.ConfigMap); ok {
				check(found)
			}
		}
	}()

	a.never(fmt.Sprintf("ConfigMap %s/%s has other data", o.Namespace, o.Name), func(ctx context.Context) bool {
		found := &corev1.ConfigMap{}
		err := a.admin.Get(ctx, client.ObjectKeyFromObject(o), found)
		a.Expect(client.IgnoreNotFound(err)).To(Succeed())

		return happened.Load() || err == nil && bad(found.Data)
	})
}

// plantChart writes a ConfigMap with the name, labels and origins of the provider's stored chart, but with templates of
// its own, into the namespace of the provider, and deletes the stored chart.
func (s *site) plantChart() {
	s.Helper()

	p := s.home.resource()
	s.Expect(s.admin.Get(s.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
	stored, err := store.Open(s.admin, p.Status.Chart.Reference).Get(s.ctx, p.Status.Chart.Digest)
	s.Expect(err).NotTo(HaveOccurred())

	files := slices.DeleteFunc(slices.Clone(stored.Chart.Files), func(f chart.File) bool {
		return f.Name == chart.MetadataFile || strings.HasPrefix(f.Name, "templates/")
	})
	forged := note(s.name, "", "a forged chart was rendered") + `  of: '` + s.name + `-{{ "forged" }}'` + "\n"
	c, err := chart.New(stored.Chart.Metadata, append(files, chart.File{Name: "templates/x.yaml", Data: []byte(forged)}))
	s.Expect(err).NotTo(HaveOccurred())
	archive, err := c.Archive()
	s.Expect(err).NotTo(HaveOccurred())

	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: operatorNamespace, Name: path.Base(p.Status.Chart.Reference)}
	s.Expect(s.admin.Get(s.ctx, key, cm)).To(Succeed())
	s.Expect(s.admin.Delete(s.ctx, cm.DeepCopy())).To(Succeed())

	for key := range cm.BinaryData {
		cm.BinaryData[key] = archive
	}

	cm.Namespace, cm.ResourceVersion, cm.UID = s.home.namespace, "", ""
	s.provide(cm)
}
