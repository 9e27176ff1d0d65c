package apply

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())

	return o
}

// deployed is a Deployment that has been installed by a program, and then changed by others.
const deployed = `
kind: Deployment
metadata:
  labels: {app: a, old: x, team: b}
  finalizers: [example.com/old]
spec:
  replicas: 3
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 2}}
  template:
    spec:
      nodeSelector: {disk: ssd}
      containers:
      - name: manager
        image: manager:v1
        env: [{name: OLD, value: a}, {name: OURS, value: b}]
      - name: proxy
        image: proxy:v2
        ports: [{containerPort: 8443, protocol: TCP}]
`

// What the installer and the others have set.
const (
	installed = `{"f:metadata": {"f:labels": {"f:app": {}, "f:old": {}}, "f:finalizers": {"v:\"example.com/old\"": {}}},
		"f:spec": {"f:replicas": {}, "f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}}},
			"f:template": {"f:spec": {"f:nodeSelector": {}, "f:containers": {
				"k:{\"name\":\"manager\"}": {".": {}, "f:name": {}, "f:image": {}, "f:env": {
					".": {}, "k:{\"name\":\"OLD\"}": {".": {}, "f:name": {}, "f:value": {}}}},
				"k:{\"name\":\"proxy\"}": {".": {}, "f:name": {}, "f:ports": {
					".": {}, "k:{\"containerPort\":8443,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}}
			}}}}}`
	changed = `{"f:metadata": {"f:labels": {"f:team": {}}},
		"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxUnavailable": {}}}, "f:template": {"f:spec": {"f:containers": {
			"k:{\"name\":\"manager\"}": {"f:env": {"k:{\"name\":\"OURS\"}": {".": {}, "f:name": {}, "f:value": {}}}},
			"k:{\"name\":\"proxy\"}": {"f:image": {}}}}}}}`
)

// wanted has neither the old label nor the old variable, and no proxy, replicas, strategy or nodeSelector.
const wanted = `
apiVersion: apps/v1
metadata: {labels: {app: a}}
spec: {template: {spec: {containers: [{name: manager, image: manager:v2, env: [{name: NEW, value: c}]}]}}}
`

func entry(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// applied is what Capstan has applied.
func applied(fields string) metav1.ManagedFieldsEntry {
	e := entry(v1alpha2.FieldOwner, "", fields)
	e.Operation = metav1.ManagedFieldsOperationApply

	return e
}

// TestTakeover checks that what the installer alone has set becomes Capstan's, and goes if it is not applied. The
// strategy stays the installer's: a part of it is another program's, and none is applied.
func TestTakeover(t *testing.T) {
	g := NewWithT(t)
	o := parse(t, deployed)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("clusterctl", "", installed), entry("kubectl-edit", "", changed), applied(`{"f:spec": {"f:paused": {}}}`),
	})
	before := o.DeepCopy()

	taken := new(Client).takeoverOf(o, parse(t, wanted), nil)
	g.Expect(o).To(Equal(before))

	g.Expect(slices.Compact(new(Client).reclaimed(o, parse(t, wanted)))).To(ConsistOf("/metadata/labels/old",
		"/spec/replicas", "/spec/template/spec/nodeSelector", "/spec/template/spec/containers"))

	left := taken.without(o)
	left.SetManagedFields(nil)
	g.Expect(left.Object).To(Equal(parse(t, `
kind: Deployment
metadata:
  labels: {app: a, team: b}
  finalizers: [example.com/old]
spec:
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 2}}
  template:
    spec:
      containers:
      - name: manager
        image: manager:v1
        env: [{name: OURS, value: b}]
`).Object), "what is left before the target is applied")

	g.Expect(fieldsOf(t, taken, "clusterctl")).To(MatchJSON(`{
		"f:metadata": {"f:finalizers": {"v:\"example.com/old\"": {}}},
		"f:spec": {"f:strategy": {"f:type": {}, "f:rollingUpdate": {".": {}, "f:maxSurge": {}}}}}`))
	g.Expect(fieldsOf(t, taken, "kubectl-edit")).To(MatchJSON(`{"f:metadata": {"f:labels": {"f:team": {}}},
		"f:spec": {"f:strategy": {"f:rollingUpdate": {"f:maxUnavailable": {}}}, "f:template": {"f:spec": {"f:containers": {
			"k:{\"name\":\"manager\"}": {"f:env": {"k:{\"name\":\"OURS\"}": {".": {}, "f:name": {}, "f:value": {}}}}}}}}}`),
		"the proxy goes with all of its parts")
	g.Expect(fieldsOf(t, taken, v1alpha2.FieldOwner)).To(And(ContainSubstring("f:paused"), ContainSubstring("proxy")))
}

func fieldsOf(t *testing.T, taken *takeover, manager string) string {
	t.Helper()

	for _, e := range taken.managed {
		if e.Manager == manager {
			return e.FieldsV1.String()
		}
	}

	return ""
}

// TestTakeoverIsComplete checks that nothing is left to take over afterwards, and that an entry without fields goes.
func TestTakeoverIsComplete(t *testing.T) {
	g := NewWithT(t)
	o := parse(t, deployed)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{entry("helm", "", `{"f:metadata": {"f:labels": {"f:app": {}}}}`)})

	taken := new(Client).takeoverOf(o, parse(t, wanted), nil)
	g.Expect(taken.removed).To(BeEmpty())
	g.Expect(taken.managed).To(ConsistOf(
		HaveField("APIVersion", "apps/v1"), // the only entry is Capstan's
	))

	o.SetManagedFields(taken.managed)
	g.Expect(new(Client).takeoverOf(o, parse(t, wanted), nil)).To(BeNil())
}

// TestFieldsThatStay checks what is not taken over although an installer may have set it.
func TestFieldsThatStay(t *testing.T) {
	const replicas = `{"f:spec": {"f:replicas": {}}}`

	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		kind    string
		owned   bool
		stays   bool
	}{
		"clusterctl":               {entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", replicas)}},
		"helm":                     {entries: []metav1.ManagedFieldsEntry{entry("helm", "", replicas)}},
		"kubectl apply":            {entries: []metav1.ManagedFieldsEntry{entry("kubectl-client-side-apply", "", replicas)}},
		"kubectl apply, by server": {entries: []metav1.ManagedFieldsEntry{entry("kubectl", "", replicas)}},
		"clusterctl, after it":     {entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", replicas)}, owned: true},
		"an addition by kubectl": {
			entries: []metav1.ManagedFieldsEntry{entry("kubectl", "", replicas)}, owned: true, stays: true,
		},
		"Capstan, by an update": {entries: []metav1.ManagedFieldsEntry{entry(v1alpha2.FieldOwner, "", replicas)}},
		"what Capstan applies":  {entries: []metav1.ManagedFieldsEntry{applied(replicas)}, stays: true},
		"cluster-api-operator's binary": {entries: []metav1.ManagedFieldsEntry{
			entry("manager", "", replicas), entry("capi-operator", "", `{"f:spec": {"f:paused": {}}}`),
		}},
		"any binary of that name": {entries: []metav1.ManagedFieldsEntry{entry("manager", "", replicas)}, stays: true},
		"a change of one field":   {entries: []metav1.ManagedFieldsEntry{entry("kubectl-edit", "", replicas)}, stays: true},
		"a scaled Deployment": {
			entries: []metav1.ManagedFieldsEntry{entry("kubectl", "scale", replicas)}, stays: true,
		},
		"another owner of the same field": {
			entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", replicas), entry("flux", "", replicas)}, stays: true,
		},
		"no owners":       {stays: true},
		"unknown content": {entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", `{"f`)}, stays: true},
		"status": {
			entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", `{"f:status": {"f:replicas": {}}}`)}, stays: true,
		},
		"metadata but labels and annotations": {
			entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", `{"f:metadata": {"f:finalizers": {}}}`)}, stays: true,
		},
		"a certificate": {
			entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", `{"f:webhooks": {
				"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}}`)},
			stays: true,
		},
		"a Secret": {
			entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", `{"f:data": {"f:a": {}}}`)},
			kind:    "Secret", stays: true,
		},
		"a Secret of a release, rolled back by helm": {
			entries: []metav1.ManagedFieldsEntry{entry("helm", "", `{"f:data": {"f:a": {}}}`)},
			kind:    "Secret", owned: true,
		},
		"a Secret of another release": {
			entries: []metav1.ManagedFieldsEntry{entry("helm", "", `{"f:data": {"f:a": {}}}`)},
			kind:    "Secret", stays: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := parse(t, `{kind: Any, metadata: {finalizers: [a]}, spec: {replicas: 3}, status: {replicas: 3}, data: {a: b},
				webhooks: [{name: a, clientConfig: {caBundle: x}}]}`)
			o.SetManagedFields(c.entries)

			client := &Client{release: types.NamespacedName{Namespace: "a", Name: "b"}}
			if c.owned {
				client.prepare(o)
			}

			target := &unstructured.Unstructured{Object: map[string]any{"kind": o.GetKind()}}
			if c.kind != "" {
				o.SetKind(c.kind)
				target.SetKind(c.kind)
			}

			taken := client.takeoverOf(o, target, nil)
			g.Expect(taken == nil || len(taken.removed) == 0).To(Equal(c.stays))
		})
	}
}

// TestOwnersOfPredecessor checks that owner references to provider resources are removed, even if another program has
// set them, unless something else owns the object, too.
func TestOwnersOfPredecessor(t *testing.T) {
	provider := metav1.OwnerReference{
		APIVersion: "operator.cluster.x-k8s.io/v1alpha2", Kind: "CoreProvider", Name: "cluster-api", UID: "1",
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "2"}

	for name, c := range map[string]struct {
		owners  []metav1.OwnerReference
		changes bool
	}{
		"none":               {},
		"the provider":       {owners: []metav1.OwnerReference{provider}, changes: true},
		"something else":     {owners: []metav1.OwnerReference{other}},
		"and something else": {owners: []metav1.OwnerReference{provider, other}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
			live := target.DeepCopy()
			live.SetOwnerReferences(c.owners)
			live.SetManagedFields([]metav1.ManagedFieldsEntry{entry("any", "",
				`{"f:metadata": {"f:ownerReferences": {".": {}, "k:{\"uid\":\"1\"}": {}}}}`)})

			taken := new(Client).takeoverOf(live, target, nil)
			if !c.changes {
				g.Expect(taken).To(BeNil())
				return
			}

			g.Expect(fieldsOf(t, taken, "any")).To(BeEmpty())
			g.Expect(taken.without(live).GetOwnerReferences()).To(BeEmpty())
			g.Expect(taken.removed).To(ContainElement(fieldpath.MakePathOrDie("metadata", "ownerReferences")))
		})
	}
}
