package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// maxReleaseSecret bounds the size of a release's Secret. The API server accepts 1 MiB, and ten revisions are kept.
const maxReleaseSecret = 120 << 10

// The life of five real providers. Nothing converts objects here, so they are read in their storage version.
var _ = Describe("Real providers", Ordered, func() {
	// Core is the last in the file.
	all := []struct{ label, before, after string }{
		{"bootstrap-kubeadm", "v1.12.11", "v1.14.0"},
		{"control-plane-kubeadm", "v1.12.11", "v1.14.0"},
		{"infrastructure-docker", "v1.12.11", "v1.14.0"},
		{"infrastructure-aws", "v2.10.3", "v2.11.1"},
		{"cluster-api", "v1.12.11", "v1.14.0"},
	}
	docker, aws := 2, 3

	var (
		repository string
		w          *world
		cli        commandLine
		providers  []v1alpha2.Provider
		objects    []*unstructured.Unstructured
	)

	BeforeAll(func(ctx SpecContext) {
		repository = testproviders.Folder(GinkgoT())

		w = newWorld()
		w.createOperatorDeployment(ctx)
		w.start()
		cli = newCommandLine(w)
	})

	// load prepares the cluster for a version of a provider, and returns its resource.
	load := func(ctx context.Context, i int, version string) v1alpha2.Provider {
		GinkgoHelper()

		wanted := harness.Wanted{Label: all[i].label, Version: version}
		if i == aws {
			wanted.Variables = harness.AWSVariables
		}

		release, err := harness.Load(ctx, repository, wanted)
		Expect(err).NotTo(HaveOccurred())
		Expect(release.Prepare(ctx, w.client)).To(Succeed())

		p := release.Resource()
		p.GetSpec().Deployment = &v1alpha2.DeploymentSpec{Replicas: ptr.To(int32(2))}

		return p
	}
	// become applies all resources at once, and waits until they are ready. It returns how long applying them took.
	become := func(ctx context.Context, version func(i int) string) (took time.Duration) {
		GinkgoHelper()

		providers = nil
		for i := range all {
			providers = append(providers, load(ctx, i, version(i)))
		}

		took = w.applyTogether(ctx, providers)

		for i, p := range providers {
			Eventually(w.read(ctx, p)).Should(beReady(version(i)), all[i].label)
		}

		return took
	}

	It("become ready when all five are created at once", func(ctx SpecContext) {
		become(ctx, func(i int) string { return all[i].before })
	})

	It("have no differences for users who may not read Secrets", func(ctx SpecContext) {
		w.createViewRole(ctx)
		w.bind(ctx, "viewer", "", "ClusterRole", "view")

		for _, p := range all {
			Eventually(func() string {
				out, failure, _ := cli.run(ctx, "diff", p.label, "--as", "viewer")
				return out + failure
			}).Should(HavePrefix(p.label+": no changes\nWarning: what the resource asks for is compared"), p.label)
		}
	})

	It("are releases that helm lists as deployed", func(ctx SpecContext) {
		releases := w.helm(ctx, "helm", "list", "-A")
		Expect(releases).To(HaveLen(len(all)))

		for _, p := range all {
			Expect(releases).To(ContainElement(And(
				HaveField("Name", p.label), HaveField("Namespace", p.label+"-system"), HaveField("Status", "deployed"),
				HaveField("Chart", p.label+"-"+p.before[1:]), HaveField("AppVersion", p.before),
			)))
		}
	})

	It("have no drift while nothing changes, and all their objects are checked", func(ctx SpecContext) {
		// clusterctl's inventory is written after a provider is Ready.
		settled(func() int { return len(w.operatorWrites(anything)) })

		restarted := time.Now()

		w.restart()

		compared := func() []bed.Request {
			return w.requests(func(r bed.Request) bool {
				return r.Received.After(restarted) && r.Verb == "get" && r.Resource == "clusterroles"
			})
		}

		Eventually(compared).ShouldNot(BeEmpty())
		settled(func() int { return len(w.requests(func(r bed.Request) bool { return r.Received.After(restarted) })) })

		writes := func() []bed.Request {
			return w.operatorWrites(func(r bed.Request) bool { return r.Received.After(restarted) })
		}
		Consistently(writes).WithTimeout(quietPeriod).Should(BeEmpty())

		for i, p := range providers {
			Expect(w.read(ctx, p)(Default)).To(
				And(beReady(all[i].before), Not(haveConditionType(v1alpha2.DriftedCondition))))
		}
	})

	It("have no difference to their specs, and some to the next version", func(ctx SpecContext) {
		load(ctx, aws, all[aws].after)

		Expect(cli.succeed(ctx, "diff", "cluster-api")).To(Equal("cluster-api: no changes\n"))
		Expect(cli.succeed(ctx, "diff", "aws")).To(Equal("infrastructure-aws: no changes\n"))
		Expect(cli.succeed(ctx, "diff", "aws", "--version", "v2.11.1")).To(And(
			MatchRegexp(`(?m)^\+ +image: \S+:v2\.11\.1$`),
			MatchRegexp(`(?m)^infrastructure-aws v2\.10\.3 to v2\.11\.1: .* 2 CRDs to create, \d+ to change$`),
		))
		Expect(cli.succeed(ctx, "upgrade", "plan")).To(MatchRegexp(`(?m)^infrastructure-aws +v2\.10\.3 +v2\.11\.1 +v1beta1$`))
	})

	It("are upgraded after core in one commit, without an outage and without losing objects", func(ctx SpecContext) {
		objects = w.createUsersObjects(ctx)

		var (
			labels  []string
			deleted []func() ([]string, int32)
		)

		for _, p := range all {
			labels = append(labels, p.label)
			deleted = append(deleted, w.observeOutages(ctx, p.label))
		}

		observed := w.observeOrder(ctx, labels, "v1.14.0", "v2.11.1")

		begin := time.Now()

		took := become(ctx, func(i int) string { return all[i].after })

		order, outages := observed()
		Expect(outages).To(BeEmpty())
		Expect(order).To(HaveLen(len(all)))

		for i, seen := range deleted {
			outages, _ := seen()
			Expect(outages).To(BeEmpty(), all[i].label)
		}

		w.expectAlive(ctx, objects)

		if !isOneChange(took) {
			return
		}

		Expect(order[0]).To(Equal("cluster-api"), "%v", order)

		tried := w.requests(func(r bed.Request) bool {
			return r.Received.After(begin) && r.DryRun && r.Resource == "deployments" && r.Code == http.StatusOK
		})
		Expect(tried).To(HaveLen(len(all)), "what waits for core is not tried before")

		events := w.eventsOf(ctx)
		Expect(events).To(ContainElement(ContainSubstring("waiting until CoreProvider cluster-api-system/cluster-api " +
			"has changed from v1.12.11 to v1.14.0, which comes first")))

		position := func(label, version string) int {
			healthy := label + ": " + version + " is healthy"
			return slices.IndexFunc(events, func(e string) bool { return strings.Contains(e, healthy) })
		}
		for _, p := range all[:len(all)-1] {
			Expect(position(p.label, p.after)).To(BeNumerically(">", position("cluster-api", "v1.14.0")), "%s", p.label)
		}
	})

	It("return to an earlier version in place, without an outage and without losing objects", func(ctx SpecContext) {
		const version = "v1.13.5"

		p := load(ctx, docker, version)
		before := w.managerOf(ctx, all[docker].label)(Default)
		seen := w.observeOutages(ctx, all[docker].label)

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
		Eventually(w.read(ctx, p)).Should(beReady(version))

		outages, least := seen()
		Expect(outages).To(BeEmpty())
		Expect(least).To(BeNumerically(">=", 1), "available replicas")

		after := w.managerOf(ctx, all[docker].label)(Default)
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Spec.Template.Spec.Containers[0].Image).NotTo(Equal(before.Spec.Template.Spec.Containers[0].Image))

		w.expectAlive(ctx, objects)
	})

	It("replace only the object in which an immutable field changes", func(ctx SpecContext) {
		const label = "runtime-extension-test"

		folder := withNamedExtension(repository)
		p := w.install(ctx, folder, harness.Wanted{Label: label, Version: "v1.11.11"})
		Eventually(w.read(ctx, p)).Should(beReady("v1.11.11"))

		uids := func() map[string]types.UID {
			found := map[string]types.UID{}

			for _, list := range []client.ObjectList{
				&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{},
			} {
				Expect(w.client.List(ctx, list, client.InNamespace(p.GetNamespace()),
					client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: label})).To(Succeed())
				Expect(meta.EachListItem(list, func(o runtime.Object) error {
					found[fmt.Sprintf("%T %s", o, o.(client.Object).GetName())] = o.(client.Object).GetUID()
					return nil
				})).To(Succeed())
			}

			return found
		}
		before := uids()
		newer, err := harness.Load(ctx, folder, harness.Wanted{Label: label, Version: "v1.12.11"})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.client.Create(ctx, must(newer.ConfigMap()))).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.12.11" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.12.11"))

		after := uids()
		Expect(after).To(HaveLen(len(before)))

		for name, uid := range before {
			if name == "*v1.Deployment test-extension-controller-manager" {
				Expect(after[name]).NotTo(Equal(uid), "its selector has changed")
			} else {
				Expect(after[name]).To(Equal(uid), name)
			}
		}
	})

	It("wait for the credentials of aws before anything of it is applied", func(ctx SpecContext) {
		p := providers[aws]

		w.pastWebhooks(ctx, "it holds up the removal", func() error {
			return client.IgnoreNotFound(w.client.Delete(ctx, objects[len(objects)-1]))
		})
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())

		credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: p.GetNamespace(), Name: all[aws].label + "-variables",
		}}
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(credentials), credentials)).To(Succeed())
		data := credentials.Data
		credentials.Data = nil
		Expect(w.client.Update(ctx, credentials)).To(Succeed())

		release, err := harness.Load(ctx, repository, harness.Wanted{
			Label: all[aws].label, Version: all[aws].after, Variables: harness.AWSVariables,
		})
		Expect(err).NotTo(HaveOccurred())

		p = release.Resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.MissingVariablesReason, "AWS_B64ENCODED_CREDENTIALS"))

		deployments := &appsv1.DeploymentList{}
		Expect(w.client.List(ctx, deployments, client.InNamespace(p.GetNamespace()))).To(Succeed())
		Expect(deployments.Items).To(BeEmpty())

		credentials.Data = data
		Expect(w.client.Update(ctx, credentials)).To(Succeed())
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetAnnotations(map[string]string{"touched": "yes"}) })
		Eventually(w.read(ctx, p)).Should(beReady(all[aws].after))
	})

	It("never expose a credential", func(ctx SpecContext) {
		secret := harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"]
		plain, err := base64.StdEncoding.DecodeString(secret)
		Expect(err).NotTo(HaveOccurred())
		log, err := os.ReadFile(w.log)
		Expect(err).NotTo(HaveOccurred())

		for _, place := range []string{
			string(log),
			w.run(ctx, "kubectl", "get", "capstan", "-A", "-o", "yaml"),
			w.run(ctx, "kubectl", "get", "events", "-A", "-o", "yaml"),
			w.run(ctx,
				"kubectl", "get", "configmaps", "-A", "-l", "app.kubernetes.io/component=capstan-chart", "-o", "yaml"),
		} {
			Expect(place).NotTo(Or(ContainSubstring(secret), ContainSubstring(string(plain))))
		}
	})

	It("fit into Helm's storage, including the largest", func(ctx SpecContext) {
		azure := w.install(ctx, repository, harness.Wanted{Label: "infrastructure-azure", Version: "v1.26.0"})
		Eventually(w.read(ctx, azure)).Should(beReady("v1.26.0"))

		secrets := &corev1.SecretList{}
		Expect(w.client.List(ctx, secrets, client.MatchingLabels{"owner": "helm"})).To(Succeed())
		Expect(len(secrets.Items)).To(BeNumerically(">", len(all)))

		for _, secret := range secrets.Items {
			Expect(len(secret.Data["release"])).To(BeNumerically("<", maxReleaseSecret), secret.Name)
		}
	})

	It("are deleted with their CRDs and namespaces once nothing uses them", func(ctx SpecContext) {
		for _, o := range objects {
			w.pastWebhooks(ctx, o.GetKind(), func() error { return client.IgnoreNotFound(w.client.Delete(ctx, o)) })
		}

		Expect(cli.succeed(ctx, "delete", "--all", "--include-crd", "--include-namespace", "--wait", "--yes")).To(
			ContainSubstring("CoreProvider cluster-api-system/cluster-api: removed"))
		Expect(w.clusterObjects(ctx)).To(BeEmpty())
	})
})

// clusterObjects returns the names of the providers' objects without a namespace, one per line.
func (w *world) clusterObjects(ctx context.Context) string {
	GinkgoHelper()

	return w.run(ctx, "kubectl", "get",
		"crds,clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations",
		"-l", "cluster.x-k8s.io/provider", "-o", "name")
}

// withNamedExtension returns a folder with all providers of another one. The runtime extension, which is published
// without a name, is called "test".
func withNamedExtension(repository string) string {
	GinkgoHelper()

	folder := GinkgoT().TempDir()
	providers, err := os.ReadDir(repository)
	Expect(err).NotTo(HaveOccurred())

	for _, provider := range providers {
		label := provider.Name()
		if label == "runtime-extension" {
			label = "runtime-extension-test"
		}

		Expect(os.Symlink(filepath.Join(repository, provider.Name()), filepath.Join(folder, label))).To(Succeed())
	}

	return folder
}

// eventsOf returns the notes of all events about providers, oldest first.
func (w *world) eventsOf(ctx context.Context) []string {
	GinkgoHelper()

	list := &eventsv1.EventList{}
	Expect(w.client.List(ctx, list)).To(Succeed())
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })

	var notes []string

	for _, e := range list.Items {
		if e.Regarding.APIVersion == v1alpha2.GroupVersion.String() {
			notes = append(notes, v1alpha2.ProviderType(e.Regarding.Kind).Label(e.Regarding.Name)+": "+e.Note)
		}
	}

	return notes
}

// expectAlive expects that objects exist as they were created.
func (w *world) expectAlive(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()

	for _, o := range objects {
		now := o.DeepCopy()
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(o), now)).To(Succeed(), o.GetKind())
		Expect(now.GetUID()).To(Equal(o.GetUID()), o.GetKind())
		Expect(now.Object["spec"]).To(Equal(o.Object["spec"]), o.GetKind())
	}
}
