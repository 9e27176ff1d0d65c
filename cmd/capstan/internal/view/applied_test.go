package view_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	keys "github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// readable is a cluster whose Secrets, and other kinds without an object here, the user may not read.
type readable struct {
	client.Reader

	objects []*unstructured.Unstructured
}

func (r readable) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	for _, known := range r.objects {
		if known.GetName() == key.Name && known.GetKind() == o.GetObjectKind().GroupVersionKind().Kind {
			known.DeepCopyInto(o.(*unstructured.Unstructured))
			return nil
		}
	}

	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
}

// Observe and Read fail as for a user who may not list Secrets.
func (r readable) Observe(context.Context, types.NamespacedName) (state.History, error) {
	return state.History{}, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
}

func (r readable) Read(context.Context, types.NamespacedName, state.Revision) (*release.Record, error) {
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
}

// parse returns the object in a YAML document.
func parse(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(document), &o.Object)).To(Succeed())

	return o
}

const liveManager = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: manager
  namespace: capa-system
  uid: x
  labels: {app.kubernetes.io/managed-by: Helm, provider: aws, others: label}
  managedFields:
  - manager: capstan
    operation: Apply
    apiVersion: apps/v1
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:labels: {f:app.kubernetes.io/managed-by: {}, f:provider: {}}}
      f:spec:
        f:template:
          f:spec:
            f:containers:
              'k:{"name":"manager"}':
                .: {}
                f:name: {}
                f:args: {}
                f:env:
                  'k:{"name":"POD"}': {.: {}, f:name: {}, f:valueFrom: {f:fieldRef: {}}}
                  'k:{"name":"EMPTY"}': {.: {}, f:name: {}, f:value: {}}
                f:image: {}
                f:resources: {}
                f:ports: {'k:{"containerPort":8080,"protocol":"TCP"}': {.: {}, f:containerPort: {}}}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: sidecar
        image: injected
      - name: manager
        image: aws:v1
        imagePullPolicy: Always
        args: [--level=info, "--token=s3cr3t-v4lue", --concurrency=7]
        env:
        - {name: POD, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
        - {name: EMPTY}
        ports: [{containerPort: 8080, protocol: TCP}]
        resources: {limits: {memory: 1Gi}}
`

const renderedManager = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: manager
  namespace: capa-system
  labels: {provider: aws}
  annotations: {role: arn(unknown ROLE)}
spec:
  template:
    spec:
      containers:
      - name: manager
        image: aws:v1
        args: [--level=info, "--token=(unknown TOKEN)", "--concurrency=(unknown N)"]
        env:
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: EMPTY, value: ""}
        ports: [{containerPort: 8080}]
        resources: {limits: {memory: 1024Mi}}
`

// TestCompareWithObjects: what others own, defaults and values that are not known are no differences, and no value of a
// variable is shown, also where it is removed.
func TestCompareWithObjects(t *testing.T) {
	role := parse(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: manager}}")

	for name, test := range map[string]struct {
		change func(container map[string]any)
		want   []string
	}{
		"nothing": {func(map[string]any) {}, nil},
		"an image": {
			func(container map[string]any) { container["image"] = "aws:v2" },
			[]string{"-        image: aws:v1\n+        image: aws:v2\n"},
		},
		"arguments": {
			func(container map[string]any) { container["args"] = []any{"--level=info", "--new"} },
			[]string{"+        - --new\n", "-        - --token="},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			installed, planned := parse(t, renderedManager), parse(t, renderedManager)
			containers, _, _ := unstructured.NestedSlice(planned.Object, "spec", "template", "spec", "containers")
			test.change(containers[0].(map[string]any))
			g.Expect(unstructured.SetNestedSlice(planned.Object, containers, "spec", "template", "spec", "containers")).To(
				Succeed())

			p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}}
			p.Status.InstalledVersion = new("v1")
			p.Status.Inventory = keys.Inventory([]keys.Key{keys.KeyOf(installed), keys.KeyOf(role)})

			reader := &view.Reader{Client: readable{objects: []*unstructured.Unstructured{parse(t, liveManager)}}}
			c, left, err := reader.CompareWithObjects(t.Context(), p,
				&release.Record{Objects: []*unstructured.Unstructured{installed, role}},
				&release.Record{AppVersion: "v2", Objects: []*unstructured.Unstructured{planned, role}}, 0)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(left).To(Equal([]string{"ClusterRole"}))
			g.Expect(c.From).To(Equal("v1"))

			if test.want == nil {
				g.Expect(c.Changes).To(BeEmpty())
				return
			}

			g.Expect(c.Changes).To(HaveLen(1))
			g.Expect(c.Changes[0].Diff).NotTo(ContainSubstring(secretValue))

			for _, want := range test.want {
				g.Expect(c.Changes[0].Diff).To(ContainSubstring(want))
			}
		})
	}
}

// TestReadOnly: without the permission for Helm's records, the resource names the release, its objects and revisions.
func TestReadOnly(t *testing.T) {
	g := NewWithT(t)
	live := parse(t, liveManager)
	cluster := readable{objects: []*unstructured.Unstructured{live}}
	reader := &view.Reader{Client: cluster, Releases: cluster}

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}}
	p.Status.Release = &v1alpha2.ReleaseStatus{Name: "infrastructure-aws", Revision: 2}
	p.Status.History = []v1alpha2.ReleaseRevision{{Number: 2, Version: "v2.0.0"}, {Number: 1}}
	p.Status.Inventory = keys.Inventory([]keys.Key{
		keys.KeyOf(live), {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Name: "credentials"},
	})

	v, err := reader.Provider(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Release.Revision).To(BeEquivalentTo(2))
	g.Expect(v.Objects).To(HaveExactElements(HaveField("Status", status.InProgressStatus)))
	g.Expect(v.Unread).To(Equal([]string{"Secret"}))

	history, err := reader.History(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(history).To(HaveExactElements(HaveField("Revision", 1), HaveField("Revision", 2)))
}
