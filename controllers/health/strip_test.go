package health

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	data, err := yaml.YAMLToJSON([]byte(text))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	o := &unstructured.Unstructured{}
	NewWithT(t).Expect(o.UnmarshalJSON(data)).To(Succeed())

	return o
}

const strippedMetadata = `
metadata:
  namespace: a
  name: b
  uid: u
  resourceVersion: "7"
  generation: 2
  labels: {cluster.x-k8s.io/provider: infrastructure-docker, app: b}
  annotations:
    meta.helm.sh/release-name: infrastructure-docker
    meta.helm.sh/release-namespace: a
    capstan.dev/healthy-when: Ready, observedGeneration
    large: text
`

// TestStripKeepsHealth checks that a stripped object has the health, the pods and the version of the whole one.
func TestStripKeepsHealth(t *testing.T) {
	const deployment = `
kind: Deployment
apiVersion: apps/v1` + strippedMetadata + `
spec:
  replicas: 2
  paused: true
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: b}, matchExpressions: [{key: tier, operator: In, values: [x, z]}]}
  template:
    metadata: {labels: {app: b}}
    spec:
      initContainers: [{name: init, image: "a:v1", args: [x]}]
      containers: [{name: manager, image: "b:v2", args: [x]}, {name: proxy, image: "c:v3"}]
`

	for name, text := range map[string]string{
		"a Deployment that is healthy": deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, " +
			"readyReplicas: 2, availableReplicas: 2, " +
			"conditions: [{type: Available, status: 'True'}, {type: Ready, status: 'True'}]}",
		"one that progresses": deployment +
			"status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1}",
		"one that cannot create pods": deployment + "status: {observedGeneration: 2, conditions: [" +
			"{type: ReplicaFailure, status: 'True', message: exceeded quota}]}",
		"a StatefulSet": "kind: StatefulSet\napiVersion: apps/v1" + strippedMetadata + `
spec:
  replicas: 3
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}
  selector: {matchLabels: {a: b}}
status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, currentReplicas: 1, updatedReplicas: 1}`,
		"a Job that has completed": "kind: Job\napiVersion: batch/v1" + strippedMetadata +
			"spec: {parallelism: 1, completions: 2}\nstatus: {conditions: [{type: Complete, status: 'True'}]}",
		"a Job that has failed": "kind: Job\napiVersion: batch/v1" + strippedMetadata +
			"spec: {suspend: false}\n" +
			"status: {startTime: now, failed: 1, conditions: [{type: Failed, status: 'True', message: no}]}",
		"an object of a provider's kind": "kind: Cloud\napiVersion: example.com/v1" + strippedMetadata +
			"spec: {text: x}\nstatus: {observedGeneration: 2, phase: Running, " +
			"conditions: [{type: Ready, status: 'False', message: no}]}",
		"one without a status": "kind: Cloud\napiVersion: example.com/v1" + strippedMetadata + "data: {x: y}",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			whole, stripped := parse(t, text), parse(t, text)
			_, err := Strip(stripped)
			g.Expect(err).NotTo(HaveOccurred())

			g.Expect(Compute(stripped)).To(Equal(Compute(whole)))
			g.Expect(replicaFailure(stripped)).To(Equal(replicaFailure(whole)))

			selector, err := podSelector(whole)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(podSelector(stripped)).To(Equal(selector))

			key := object.KeyOf(whole)
			g.Expect(object.KeyOf(stripped)).To(Equal(key))
			g.Expect(snapshotOf(key, stripped)).To(Equal(object.SnapshotOf(key, whole)))
			g.Expect(snapshotOf(key, whole)).To(Equal(object.SnapshotOf(key, whole)))

			once := stripped.DeepCopy()
			_, err = Strip(stripped)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stripped).To(Equal(once), "a page of a list is stripped before it reaches the cache")

			g.Expect(stripped.GetLabels()).To(HaveLen(1))
			g.Expect(stripped.GetAnnotations()).NotTo(HaveKey("large"))
		})
	}
}

func TestStripLimitsSize(t *testing.T) {
	long := strings.Repeat("ä", 2_000)

	many := map[string]any{}
	list := []any{}

	for n := range 500 {
		many[fmt.Sprint("key-", n)] = map[string]any{"text": long[:100]}
		list = append(list, map[string]any{"type": fmt.Sprint(n), "name": long[:100], "image": long[:100], "message": long})
	}

	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "a", "resourceVersion": "7",
			"labels":      map[string]any{v1alpha2.ClusterctlProviderLabel: "infrastructure-docker", "other": long},
			"annotations": map[string]any{v1alpha2.HealthyWhenAnnotation: long, "other": long},
		},
		"spec": map[string]any{
			"replicas": int64(1), "selector": many, "data": many,
			"template": map[string]any{"spec": map[string]any{"containers": list, "initContainers": list}},
		},
		"status": map[string]any{"conditions": list, "observedGeneration": int64(7), "other": many, "a": long},
		"data":   many,
	}}
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Labels: map[string]string{"other": long},
		Annotations:     map[string]string{v1alpha2.HealthyWhenAnnotation: long},
		OwnerReferences: []metav1.OwnerReference{{Name: long}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: long}},
	}}

	for _, object := range []any{o, m} {
		g := NewWithT(t)
		_, err := Strip(object)
		g.Expect(err).NotTo(HaveOccurred())

		left, err := json.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(left)).To(BeNumerically("<", 100<<10))
	}

	g := NewWithT(t)
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", observedGeneration)
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")

	g.Expect(observed).To(Equal(int64(7)), "other fields leave space for it")
	g.Expect(conditions).NotTo(BeEmpty())
}
