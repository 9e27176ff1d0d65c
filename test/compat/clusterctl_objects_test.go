package compat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	coreGroup           = "cluster.x-k8s.io"
	addonsGroup         = "addons.cluster.x-k8s.io"
	bootstrapGroup      = "bootstrap.cluster.x-k8s.io"
	controlPlaneGroup   = "controlplane.cluster.x-k8s.io"
	infrastructureGroup = "infrastructure.cluster.x-k8s.io"

	// awsNamespace is that of the provider whose identities are in use.
	awsNamespace = "infrastructure-aws-system"
	// movedLabel marks the objects that belong to the cluster.
	movedLabel = "test.capstan.dev/moved"
)

// providersToMove are the providers that the cluster needs, with the kinds of its objects.
var providersToMove = []struct {
	label string
	kinds []schema.GroupKind
}{
	{"cluster-api", []schema.GroupKind{
		{Group: coreGroup, Kind: "ClusterClass"},
		{Group: coreGroup, Kind: "Cluster"},
		{Group: coreGroup, Kind: "MachineDeployment"},
		{Group: coreGroup, Kind: "MachinePool"},
		{Group: coreGroup, Kind: "MachineSet"},
		{Group: coreGroup, Kind: "Machine"},
		{Group: addonsGroup, Kind: "ClusterResourceSet"},
		{Group: addonsGroup, Kind: "ClusterResourceSetBinding"},
	}},
	{"bootstrap-kubeadm", []schema.GroupKind{{Group: bootstrapGroup, Kind: "KubeadmConfig"}}},
	{"control-plane-kubeadm", []schema.GroupKind{
		{Group: controlPlaneGroup, Kind: "KubeadmControlPlane"},
		{Group: controlPlaneGroup, Kind: "KubeadmControlPlaneTemplate"},
	}},
	{"infrastructure-docker", []schema.GroupKind{
		{Group: infrastructureGroup, Kind: "DockerCluster"},
		{Group: infrastructureGroup, Kind: "DockerClusterTemplate"},
		{Group: infrastructureGroup, Kind: "DockerMachine"},
	}},
	{"infrastructure-aws", []schema.GroupKind{{Group: infrastructureGroup, Kind: "AWSClusterStaticIdentity"}}},
}

// smallRepository writes a local repository of small providers with the kinds to move. Their CRDs have no schema, and
// no webhooks, which nothing would answer.
func smallRepository() string {
	GinkgoHelper()

	repository := GinkgoT().TempDir()

	for _, provider := range providersToMove {
		providerType, name := v1alpha2.ParseLabel(provider.label)
		release := harness.Small(providerType, types.NamespacedName{Namespace: provider.label + "-system", Name: name},
			strings.ReplaceAll(provider.label, "-", ""), "v1.0.0")
		// clusterctl refuses the name of its CRD.
		documents := slices.DeleteFunc(strings.Split(string(release.Bundle.Components), "---\n"), func(d string) bool {
			return strings.Contains(d, "kind: CustomResourceDefinition")
		})
		components := strings.Join(documents, "---\n")

		for _, kind := range provider.kinds {
			components += "---\n" + definitionToMove(kind)
		}

		folder := filepath.Join(repository, provider.label, release.Bundle.Version)
		Expect(os.MkdirAll(folder, 0o700)).To(Succeed())

		for file, content := range map[string]string{
			providerType.ComponentsFile(): components, "metadata.yaml": string(release.Bundle.Metadata),
		} {
			Expect(os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600)).To(Succeed())
		}
	}

	return repository
}

// definitionToMove returns the CRD of a kind. Identities are not namespaced, and are moved with what they own.
func definitionToMove(kind schema.GroupKind) string {
	scope, label := "Namespaced", ""
	if strings.HasSuffix(kind.Kind, "Identity") {
		scope, label = "Cluster", `clusterctl.cluster.x-k8s.io/move-hierarchy: ""`
	}

	singular := strings.ToLower(kind.Kind)
	plural := pluralOf(kind)

	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.%[2]s
  labels: {cluster.x-k8s.io/v1beta2: v1beta2, %[6]s}
spec:
  group: %[2]s
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[1]s, singular: %[4]s}
  scope: %[5]s
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, kind.Group, kind.Kind, singular, scope, label)
}

func pluralOf(kind schema.GroupKind) string {
	lower := strings.ToLower(kind.Kind)

	switch {
	case strings.HasSuffix(lower, "s"):
		return lower + "es"
	case strings.HasSuffix(lower, "y"):
		return strings.TrimSuffix(lower, "y") + "ies"
	default:
		return lower + "s"
	}
}

// objectsToMove are a cluster of a class with all that belongs to it, as Cluster API's controllers leave it.
var objectsToMove = []struct {
	owner, object string
}{
	{"", `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick}
spec:
  infrastructure:
    templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DockerClusterTemplate, name: quick}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: quick}
`},
	{"ClusterClass/quick", `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerClusterTemplate
metadata: {name: quick}
spec: {template: {spec: {}}}
`},
	{"ClusterClass/quick", `
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlaneTemplate
metadata: {name: quick}
spec: {template: {spec: {kubeadmConfigSpec: {format: cloud-config}}}}
`},
	{"", `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: berlin}
spec:
  topology: {classRef: {name: quick}, version: v1.33.0}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerCluster, name: berlin}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: berlin}
status:
  initialization: {infrastructureProvisioned: true, controlPlaneInitialized: true}
  conditions:
  - type: ControlPlaneInitialized
    status: "True"
    reason: Initialized
    message: ""
    lastTransitionTime: "2026-01-01T00:00:00Z"
`},
	{"Cluster/berlin", `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerCluster
metadata: {name: berlin}
spec: {loadBalancer: {imageTag: v1}}
`},
	{"Cluster/berlin", `
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: berlin}
spec:
  version: v1.33.0
  machineTemplate:
    spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerMachineTemplate, name: berlin}}
`},
	{"KubeadmControlPlane/berlin", `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: berlin-1, labels: {cluster.x-k8s.io/cluster-name: berlin, cluster.x-k8s.io/control-plane: ""}}
spec:
  clusterName: berlin
  bootstrap: {dataSecretName: berlin-1}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerMachine, name: berlin-1}
status: {nodeRef: {name: berlin-1}}
`},
	{"Machine/berlin-1", `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerMachine
metadata: {name: berlin-1}
spec: {customImage: kindest/node}
`},
	{"Machine/berlin-1", `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata: {name: berlin-1}
spec: {format: cloud-config}
`},
	{"KubeadmConfig/berlin-1", secretToMove("berlin-1", "")},
	{"KubeadmControlPlane/berlin", secretToMove("berlin-kubeconfig", "")},
	{"", secretToMove("berlin-ca", "")}, // belongs to the cluster by its name
	{"", secretToMove("registry", `clusterctl.cluster.x-k8s.io/move: "",`)},
	{"", `
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: cni}
spec:
  clusterSelector: {matchLabels: {cni: calico}}
  resources: [{kind: ConfigMap, name: calico}, {kind: Secret, name: calico}]
`},
	{"ClusterResourceSet/cni", `
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSetBinding
metadata: {name: berlin}
spec: {clusterName: berlin}
`},
	{"ClusterResourceSet/cni", `
apiVersion: v1
kind: ConfigMap
metadata: {name: calico}
data: {content: "kind: List"}
`},
	{"ClusterResourceSet/cni", secretToMove("calico", "")},
	{"", `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSClusterStaticIdentity
metadata: {name: account}
spec: {secretRef: account, allowedNamespaces: {}}
`},
	{"AWSClusterStaticIdentity/account", `
apiVersion: v1
kind: Secret
metadata: {name: account, namespace: ` + awsNamespace + `}
stringData: {AccessKeyID: none}
`},
}

// secretToMove returns a Secret with another label.
func secretToMove(name, label string) string {
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: %[1]s, labels: {%[2]s}}, stringData: {value: %[1]s}}"

	return fmt.Sprintf(secret, name, label)
}

// createCluster creates the objects to move in a namespace, and a Secret that has nothing to do with them.
func (w *world) createCluster(ctx context.Context, namespace string) {
	GinkgoHelper()

	Expect(w.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	Expect(w.admin.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "unrelated"},
	})).To(Succeed())

	created := map[string]*unstructured.Unstructured{}

	for _, wanted := range objectsToMove {
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(wanted.object), &o.Object)).To(Succeed())

		if o.GetNamespace() == "" && !strings.HasSuffix(o.GetKind(), "Identity") {
			o.SetNamespace(namespace)
		}

		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}

		labels[movedLabel] = "true"
		o.SetLabels(labels)

		if wanted.owner != "" {
			owner := created[wanted.owner]
			Expect(owner).NotTo(BeNil(), wanted.owner)
			o.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
			}})
		}

		delete(o.Object, "status")
		Expect(w.admin.Create(ctx, o)).To(Succeed())
		created[o.GetKind()+"/"+o.GetName()] = o
	}
}

// setStatus sets the status of the objects in a namespace, which clusterctl does not move, as their controllers would.
func (w *world) setStatus(ctx context.Context, namespace string) {
	GinkgoHelper()

	for _, wanted := range objectsToMove {
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(wanted.object), &o.Object)).To(Succeed())

		if status, found := o.Object["status"]; found {
			o.SetNamespace(namespace)
			Expect(w.admin.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			o.Object["status"] = status
			Expect(w.admin.Status().Update(ctx, o)).To(Succeed())
		}
	}
}

// movable returns the content of the objects that belong to the cluster, by kind and name.
func (w *world) movable(ctx context.Context) map[string]any {
	GinkgoHelper()

	kinds := []schema.GroupVersionKind{{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"}}

	for _, provider := range providersToMove {
		for _, kind := range provider.kinds {
			kinds = append(kinds, kind.WithVersion("v1beta2"))
		}
	}

	var all []unstructured.Unstructured

	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		Expect(w.admin.List(ctx, list, client.HasLabels{movedLabel})).To(Succeed())
		all = append(all, list.Items...)
	}

	found := map[string]any{}
	for _, o := range all {
		found[movableName(&o)] = movableContent(&o, all)
	}

	return found
}

// movableName returns the kind, namespace and name of an object.
func movableName(o client.Object) string {
	return fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
}

// movableContent returns what must be the same in both clusters: the content of an object, and its owners among the
// others.
func movableContent(o *unstructured.Unstructured, others []unstructured.Unstructured) map[string]any {
	content := map[string]any{}
	for _, field := range []string{"spec", "data", "type"} {
		content[field] = o.Object[field]
	}

	var owners []string

	for _, reference := range o.GetOwnerReferences() {
		name := "an object that does not exist"

		i := slices.IndexFunc(others, func(other unstructured.Unstructured) bool { return other.GetUID() == reference.UID })
		if i >= 0 {
			name = movableName(&others[i])
		}

		owners = append(owners, name)
	}

	content["owners"] = owners
	content["labels"] = o.GetLabels()

	return content
}
