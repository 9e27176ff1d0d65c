package attack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	. "github.com/onsi/gomega"
	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
)

// recordAttempts forge Helm's records, which the tenant may write as Secrets in its namespace.
var recordAttempts = []attempt{
	{"A forged Helm record that claims the victim's objects, waiting for drift to be corrected", func(a *arena) string {
		a.untouched()
		a.neverBound()

		return a.attempted(a.small("").by("installer"), a.small("").configMap(),
			a.forged(1, "deployed", a.loot()))
	}},
	{"Deleting a provider whose forged record names the victim's objects and namespace", func(a *arena) string {
		a.untouched()

		return a.deleted(a.small("").by("installer"), a.small("").configMap(),
			a.forged(1, "deployed", a.loot()))
	}},
	{"A forged record of the victim's release, in the tenant's namespace", func(a *arena) string {
		a.untouched()

		room := a.room()
		record := a.forged(1, "deployed", a.loot())
		record.Name, record.Labels["name"] = "sh.helm.release.v1.infrastructure-steady.v1", "infrastructure-steady"
		record.Namespace = room

		return a.deleted(small{room, "steady", "v1.0.0", ""}.resource(), record)
	}},
}

// loot is a manifest with the victim's objects and a binding of the tenant's user to cluster-admin.
func (a *arena) loot() string {
	return note("steady", victim, "taken over") + fmt.Sprintf(`---
apiVersion: v1
kind: Namespace
metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: privileged}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: steady-controller-manager, namespace: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: steady}}
  template:
    metadata: {labels: {app: steady}}
    spec: {containers: [{name: manager, image: attacker.example/evil}]}
`, victim) + a.adminBinding()
}

// forged returns the Secret of a revision of the attempt's release, as if the operator had written it.
func (a *arena) forged(revision int, status, manifest string) *corev1.Secret {
	a.Helper()

	return a.forgedFor(a.small(""), revision, status, manifest)
}

// forgedFor is forged, for any provider.
func (a *arena) forgedFor(s small, revision int, status, manifest string) *corev1.Secret {
	a.Helper()

	release := "infrastructure-" + s.name
	record := &helmrelease.Release{
		Name: release, Namespace: s.namespace, Version: revision, Manifest: manifest,
		Info: &helmrelease.Info{Status: helmrelease.Status(status)},
		Chart: &helmchart.Chart{Metadata: &helmchart.Metadata{
			APIVersion: "v2", Name: release, Version: "1.0.0", AppVersion: "v1.0.0",
			Annotations: map[string]string{chartgen.AnnotationContentID: "sha256:0"}, // like a chart of this provider
		}},
	}

	text, err := json.Marshal(record)
	a.Expect(err).NotTo(HaveOccurred())

	return s.recordOf(revision, status, text)
}

// recordOf returns a Secret of Helm with the text, which is compressed and encoded as Helm does.
func (s small) recordOf(revision int, status string, text []byte) *corev1.Secret {
	release, number := "infrastructure-"+s.name, strconv.Itoa(revision)

	return &corev1.Secret{
		Type: "helm.sh/release.v1",
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision),
			Labels: map[string]string{
				"owner": "helm", "name": release, "version": number, "status": status,
				"capstan.dev/revision": number, "capstan.dev/healthy": "true", "capstan.dev/version": "v1.0.0",
			},
		},
		Data: map[string][]byte{"release": encoded(compress(text))},
	}
}

// deleted creates objects and a provider, deletes the provider once the operator has answered, and
// returns what became of it.
func (a *arena) deleted(p v1alpha2.Provider, objects ...client.Object) string {
	a.Helper()
	a.attempted(p, objects...)
	a.Expect(a.tenant.Delete(a.ctx, p)).To(Succeed())

	return a.removal(p)
}

// gone is the answer of removal if the provider no longer exists.
const gone = "the provider is gone"

// removal waits until a provider that is being deleted is gone or the operator says what blocks that.
func (a *arena) removal(p v1alpha2.Provider) string {
	a.Helper()

	answer := ""

	a.Eventually(func(g Gomega) {
		err := a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())

		if err != nil {
			answer = gone
			return
		}

		// The answer to the deletion, which is a generation of its own, and not to anything before.
		g.Expect(p.GetStatus().ObservedGeneration).To(Equal(p.GetGeneration()))

		answer = readyReason(p)
		g.Expect(answer).To(Or(HavePrefix(v1alpha2.DeletionBlockedReason), HavePrefix(v1alpha2.KubeConfigErrorReason)))
	}).Should(Succeed(), "the deletion neither ends nor says why")

	return answer
}

// encoded returns data in base64, which Helm uses within the Secret.
func encoded(data []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(data)) }
