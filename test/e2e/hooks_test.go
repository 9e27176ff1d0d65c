package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// hookChart is a Helm chart with a ConfigMap and, if a value asks for it, a hook: a Job whose pod is never
// scheduled.
func hookChart() *chart.Chart {
	metadata := chart.Metadata{APIVersion: "v2", Name: "hooks", Version: "1.0.0", AppVersion: "v1.0.0"}
	files := []chart.File{
		{Name: chart.MetadataFile, Data: []byte("apiVersion: v2\nname: hooks\nversion: 1.0.0\nappVersion: v1.0.0\n")},
		{Name: "templates/config.yaml", Data: []byte(`apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
`)},
		{Name: "templates/hook.yaml", Data: []byte(`{{ if .Values.hook }}
apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}"
  annotations: {helm.sh/hook: "{{ .Values.hook }}", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: nowhere}
      containers: [{name: hook, image: registry.example.com/hook:v1}]
{{ end }}
`)},
	}

	return &chart.Chart{Metadata: metadata, Files: files}
}

var _ = Describe("Hooks of a plain chart", Ordered, everyKubernetes, func() {
	const namespace = "hooks"

	var (
		w *world
		r *privateRegistry
	)

	// create creates a provider whose chart has a hook for an event, or none.
	create := func(ctx context.Context, name, event string) v1alpha2.Provider {
		GinkgoHelper()

		values, err := json.Marshal(map[string]string{"hook": event})
		Expect(err).NotTo(HaveOccurred())

		p := &v1alpha2.InfrastructureProvider{ObjectMeta: named(namespace, name)}
		p.Spec.Version = "v1.0.0"
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{OCI: "oci://" + r.Address + "/files/hooks"}
		p.Spec.Values = &runtime.RawExtension{Raw: values}
		Expect(w.client.Create(ctx, p)).To(Succeed())

		return p
	}
	waitFor := func(ctx context.Context, p v1alpha2.Provider, reason string) {
		GinkgoHelper()
		Eventually(w.read(ctx, p)).Should(notBeReady(reason, "waiting for hook Job "+namespace+"/"+v1alpha2.ReleaseName(p)))
	}
	// job returns the UID of the hook's Job, or nothing if there is none.
	job := func(ctx context.Context, p v1alpha2.Provider) types.UID {
		GinkgoHelper()

		found := &batchv1.Job{ObjectMeta: named(namespace, v1alpha2.ReleaseName(p))}
		Expect(client.IgnoreNotFound(w.client.Get(ctx, client.ObjectKeyFromObject(found), found))).To(Succeed())

		return found.UID
	}
	// complete lets the pod of the hook's Job succeed. Pods of a Job that was replaced may still be there.
	complete := func(ctx context.Context, p v1alpha2.Provider) {
		GinkgoHelper()

		Eventually(func(g Gomega) {
			pods := &corev1.PodList{}
			g.Expect(w.client.List(ctx, pods, client.InNamespace(namespace),
				client.MatchingLabels{batchv1.ControllerUidLabel: string(job(ctx, p))})).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(1))

			succeeded := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))
			g.Expect(w.client.Status().Patch(ctx, &pods.Items[0], succeeded)).To(Succeed())
		}).Should(Succeed())
	}
	statuses := func(ctx context.Context, p v1alpha2.Provider) []string {
		GinkgoHelper()

		var all []string
		for _, revision := range w.helm(ctx, "helm", "history", v1alpha2.ReleaseName(p), "-n", namespace) {
			all = append(all, revision.Status)
		}

		return all
	}

	BeforeAll(func(ctx SpecContext) {
		r = newPrivateRegistry(ctx, "")
		w = readyWorld(ctx, "--concurrency=1", "--registry-config="+r.config, "--registry-ca="+r.ca)
		_, err := r.client.PushChart(ctx, r.at("files/hooks:1.0.0"), hookChart())
		Expect(err).NotTo(HaveOccurred())
		Expect(w.client.Create(ctx, tiny{name: namespace}.namespace())).To(Succeed())
	})

	It("that do not end delay no other provider", func(ctx SpecContext) {
		var waiting []v1alpha2.Provider
		for i := range 10 {
			waiting = append(waiting, create(ctx, fmt.Sprintf("waits-%d", i), "pre-install"))
		}

		for _, p := range waiting {
			waitFor(ctx, p, v1alpha2.ProgressingReason)
		}

		other := create(ctx, "other", "")
		Eventually(w.read(ctx, other)).WithTimeout(2 * soon).Should(beReady("v1.0.0"))

		for _, p := range waiting[:2] {
			Expect(statuses(ctx, p)).To(Equal([]string{"pending-install"}))
			complete(ctx, p)
			Eventually(w.read(ctx, p)).WithTimeout(2 * soon).Should(beReady("v1.0.0"))
			Expect(statuses(ctx, p)).To(Equal([]string{"deployed"}))
		}
	})

	It("run once if the operator is killed meanwhile", func(ctx SpecContext) {
		p := create(ctx, "killed", "post-install,post-upgrade")
		waitFor(ctx, p, v1alpha2.ProgressingReason)

		before := job(ctx, p)

		Expect(w.operator.Kill()).To(Succeed())
		w.start("--concurrency=1", "--registry-config="+r.config, "--registry-ca="+r.ca)
		Expect(job(ctx, p)).To(Equal(before))

		complete(ctx, p)
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(statuses(ctx, p)).To(Equal([]string{"deployed"}))
	})

	It("give way to what the resource asks for instead", func(ctx SpecContext) {
		p := create(ctx, "changed", "pre-install")
		waitFor(ctx, p, v1alpha2.ProgressingReason)

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Values = nil })
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(statuses(ctx, p)).To(Equal([]string{"failed", "deployed"}))
	})

	It("hold up a removal, but no other provider, even if the resource no longer names a source", func(ctx SpecContext) {
		p := create(ctx, "removed", "pre-delete")
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().FetchConfig = nil })
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		waitFor(ctx, p, v1alpha2.DeletionBlockedReason)

		local := newTiny("local", "v1.0.0")
		for _, o := range []client.Object{local.namespace(), local.configMap(), local.resource()} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, local.resource())).WithTimeout(2 * soon).Should(beReady("v1.0.0"))

		complete(ctx, p)
		Eventually(gone(ctx, w, p)).WithTimeout(time.Minute).Should(BeTrue())
	})
})
