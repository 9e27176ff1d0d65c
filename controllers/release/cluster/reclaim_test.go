package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
metadata: {labels: {app: a}}
spec: {template: {spec: {containers: [{name: manager, image: manager:v2, env: [{name: NEW, value: c}]}]}}}
`

func entry(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// TestReclaimableFields checks that what the installer alone has set is reclaimed. The strategy is not: a part of it is
// another program's, and the target has none at all.
func TestReclaimableFields(t *testing.T) {
	g := NewWithT(t)
	o := parse(t, deployed)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{
		entry("clusterctl", "", installed), entry("kubectl-edit", "", changed),
	})
	before := o.DeepCopy()

	fields := reclaimableFields(o, parse(t, wanted))
	g.Expect(o).To(Equal(before))
	g.Expect(fields.Object).To(Equal(parse(t, `
metadata: {labels: {app: a, old: x}}
spec:
  replicas: 3
  template:
    spec:
      nodeSelector: {disk: ssd}
      containers:
      - name: manager
        image: manager:v1
        env: [{name: OLD, value: a}]
      - name: proxy
        ports: [{containerPort: 8443, protocol: TCP}]
`).Object))
}

// TestFieldsThatStay checks what is not reclaimed although an installer may have set it.
func TestFieldsThatStay(t *testing.T) {
	const replicas = `{"f:spec": {"f:replicas": {}}}`

	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		kind    string
		stays   bool
	}{
		"clusterctl":               {entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", replicas)}},
		"kubectl apply":            {entries: []metav1.ManagedFieldsEntry{entry("kubectl-client-side-apply", "", replicas)}},
		"kubectl apply, by server": {entries: []metav1.ManagedFieldsEntry{entry("kubectl", "", replicas)}},
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
		"a field that is gone": {
			entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", `{"f:spec": {"f:paused": {}}}`)}, stays: true,
		},
		"a Secret": {
			entries: []metav1.ManagedFieldsEntry{entry("clusterctl", "", `{"f:data": {"f:a": {}}}`)},
			kind:    "Secret", stays: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := parse(t, `{kind: Any, metadata: {finalizers: [a]}, spec: {replicas: 3}, status: {replicas: 3}, data: {a: b},
				webhooks: [{name: a, clientConfig: {caBundle: x}}]}`)
			o.SetManagedFields(c.entries)

			if c.kind != "" {
				o.SetKind(c.kind)
			}

			g.Expect(reclaimableFields(o, &unstructured.Unstructured{}) == nil).To(Equal(c.stays))
		})
	}
}
