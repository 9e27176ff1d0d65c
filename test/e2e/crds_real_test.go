package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// chain upgrades a provider from version to version while objects of its kinds exist.
type chain struct {
	w        *world
	wanted   harness.Wanted
	provider v1alpha2.Provider
	// seen is what was first read in each version: spec, labels and finalizers, by object.
	seen map[schema.GroupVersionKind]map[string]string
}

func newChain(w *world, wanted harness.Wanted) *chain {
	return &chain{w: w, wanted: wanted, seen: map[schema.GroupVersionKind]map[string]string{}}
}

// install installs the first version.
func (c *chain) install(ctx context.Context) {
	GinkgoHelper()

	release, err := harness.Load(ctx, testproviders.Folder(GinkgoT()), c.wanted)
	Expect(err).NotTo(HaveOccurred())
	Expect(release.Prepare(ctx, c.w.client)).To(Succeed())
	c.provider = release.Resource()
	c.provider.GetSpec().Patches = []v1alpha2.Patch{selectorless}
	Expect(c.w.client.Create(ctx, c.provider)).To(Succeed())
	Eventually(c.w.read(ctx, c.provider)).Should(beReady(c.wanted.Version))
}

// upgrade upgrades to another version.
func (c *chain) upgrade(ctx context.Context, version string) {
	GinkgoHelper()

	c.wanted.Version = version
	release, err := harness.Load(ctx, testproviders.Folder(GinkgoT()), c.wanted)
	Expect(err).NotTo(HaveOccurred())
	Expect(release.Prepare(ctx, c.w.client)).To(Succeed())
	update(ctx, c.w, c.provider, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
	Eventually(c.w.read(ctx, c.provider)).Should(beReady(version))
}

// create creates objects in the namespace default, one for each YAML document, with a label and a
// finalizer.
func (c *chain) create(ctx context.Context, documents string) {
	GinkgoHelper()

	for document := range strings.SplitSeq(documents, "\n---\n") {
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &o.Object)).To(Succeed())
		o.SetNamespace("default")
		o.SetName(strings.ToLower(o.GetKind()))
		o.SetLabels(map[string]string{"owner": "team-a"})
		o.SetFinalizers([]string{"example.com/kept"})
		Eventually(func() error { return c.w.client.Create(ctx, o.DeepCopy(), client.FieldOwner("gitops")) }).Should(
			Succeed(), document)
	}
}

// crds returns the provider's CRDs.
func (c *chain) crds(ctx context.Context) []apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()

	list := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(c.w.client.List(ctx, list, client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: c.wanted.Label})).To(
		Succeed())
	Expect(list.Items).NotTo(BeEmpty())

	return list.Items
}

// unchanged checks that every object exists, and that it reads the same as ever in each served
// version.
func (c *chain) unchanged(ctx context.Context, objects int) {
	GinkgoHelper()

	found := 0

	for _, crd := range c.crds(ctx) {
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}

			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}

			now := c.readAll(ctx, gvk)
			if _, known := c.seen[gvk]; !known {
				c.seen[gvk] = now
			}

			Expect(now).To(Equal(c.seen[gvk]), gvk.String())

			if v.Storage {
				found += len(now)
			}
		}
	}

	Expect(found).To(Equal(objects))
}

func (c *chain) readAll(ctx context.Context, gvk schema.GroupVersionKind) map[string]string {
	GinkgoHelper()

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	Eventually(func() error { return c.w.client.List(ctx, list) }).Should(Succeed(), gvk.String())

	content := map[string]string{}

	for _, o := range list.Items {
		text, err := json.Marshal([]any{o.Object["spec"], o.GetLabels(), o.GetFinalizers()})
		Expect(err).NotTo(HaveOccurred())

		content[o.GetNamespace()+"/"+o.GetName()] = string(text)
	}

	return content
}

// storedOnlyAs waits until the objects of all CRDs of the provider are stored in the storage
// version only.
func (c *chain) storedOnlyAs(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for _, crd := range c.crds(ctx) {
			for _, v := range crd.Spec.Versions {
				if v.Storage {
					g.Expect(crd.Status.StoredVersions).To(Equal([]string{v.Name}), crd.Name)
				}
			}
		}
	}).WithTimeout(2 * time.Minute).Should(Succeed())
}

// leftByOldClusterctl creates a CRD of the first version as an old clusterctl left it: with objects
// in a version that is no longer served.
func (c *chain) leftByOldClusterctl(ctx context.Context, name, version string) {
	GinkgoHelper()

	release, err := harness.Load(ctx, testproviders.Folder(GinkgoT()), c.wanted)
	Expect(err).NotTo(HaveOccurred())
	definitions, err := harness.CRDs(release.Bundle.Components)
	Expect(err).NotTo(HaveOccurred())

	for _, crd := range definitions {
		if crd.Name != name {
			continue
		}

		crd.Spec.Conversion = nil
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			v.Storage = v.Name == version
			v.Served = v.Served || v.Storage
		}

		Expect(c.w.client.Create(ctx, crd, client.FieldOwner("clusterctl"))).To(Succeed())
	}
}

var _ = Describe("Objects through real upgrades", Ordered, func() {
	var (
		w            *world
		managers     *webhooks
		core, docker *chain
	)

	BeforeAll(func(ctx SpecContext) {
		onlyNightly()

		w = newWorld(routed)
		managers = startWebhooks(
			ctx,
			w,
			"capi-webhook-service.cluster-api-system",
			"capd-webhook-service.infrastructure-docker-system",
			"capa-webhook-service.infrastructure-aws-system",
			"capz-webhook-service.infrastructure-azure-system",
		)
		w.start()
	})

	It("core v1.9.11, with objects that an old clusterctl left in v1alpha4", func(ctx SpecContext) {
		core = newChain(w, harness.Wanted{Label: "cluster-api", Version: "v1.9.11"})
		core.leftByOldClusterctl(ctx, "machinesets.cluster.x-k8s.io", "v1alpha4")
		core.create(ctx, coreOldObjects)
		core.install(ctx)
		core.create(ctx, coreObjects)
		core.unchanged(ctx, 9)
		Expect(managers.conversions()).To(BeNumerically(">", 0), "v1alpha4 is read as v1beta1")
	})

	It("core v1.12.11, which stores v1beta2", func(ctx SpecContext) {
		core.upgrade(ctx, "v1.12.11")
		core.unchanged(ctx, 9)
		Expect(core.seen).To(HaveKey(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}))
	})

	It(
		"core v1.13.5, which lacks v1alpha3 and v1alpha4: objects stored in them are rewritten while the old managers run",
		func(ctx SpecContext) {
			core.upgrade(ctx, "v1.13.5")
			managers.forget("v1alpha3", "v1alpha4")
			core.unchanged(ctx, 9)
			Expect(core.stored(ctx)).NotTo(Or(ContainElement("v1alpha3"), ContainElement("v1alpha4")))
		},
	)

	It("core v1.14.0", func(ctx SpecContext) {
		core.upgrade(ctx, "v1.14.0")
		core.unchanged(ctx, 9)
		Expect(core.stored(ctx)).To(ContainElement("v1beta1"), "its manager has a minute to rewrite them")
	})

	It("docker v1.9.11, v1.12.11, v1.13.5 and v1.14.0", func(ctx SpecContext) {
		// The old version of docker needs the old contract, which today's core still supports.
		docker = newChain(w, harness.Wanted{Label: "infrastructure-docker", Version: "v1.9.11"})
		docker.install(ctx)
		docker.create(ctx, dockerObjects)
		docker.unchanged(ctx, 3)

		for _, version := range []string{"v1.12.11", "v1.13.5", "v1.14.0"} {
			docker.upgrade(ctx, version)
			docker.unchanged(ctx, 3)
		}
	})

	It("aws v2.10.3 and v2.11.1", func(ctx SpecContext) {
		aws := newChain(w, harness.Wanted{Label: "infrastructure-aws", Version: "v2.10.3", Variables: harness.AWSVariables})
		aws.install(ctx)
		aws.create(ctx, awsObjects)
		aws.unchanged(ctx, 3)
		aws.upgrade(ctx, "v2.11.1")
		aws.unchanged(ctx, 3)
	})

	It("azure v1.25.1 and v1.26.0", func(ctx SpecContext) {
		azure := newChain(w, harness.Wanted{Label: "infrastructure-azure", Version: "v1.25.1"})
		azure.install(ctx)
		azure.create(ctx, azureObjects)
		azure.unchanged(ctx, 3)
		azure.upgrade(ctx, "v1.26.0")
		azure.unchanged(ctx, 3)
	})

	It("are stored in v1beta2 only, once their managers have had a minute", func(ctx SpecContext) {
		core.storedOnlyAs(ctx)
		core.unchanged(ctx, 9)
		Eventually(w.read(ctx, core.provider)).Should(
			haveCondition(v1alpha2.CRDsMigratedCondition, "True", v1alpha2.CRDsMigratedReason))

		docker.storedOnlyAs(ctx)
		docker.unchanged(ctx, 3)
	})

	It("survive the removal of a provider", func(ctx SpecContext) {
		update(ctx, w, docker.provider, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.DeleteInUseAnnotation: "true"})
		})
		Expect(w.client.Delete(ctx, docker.provider)).To(Succeed())
		Eventually(gone(ctx, w, docker.provider)).Should(BeTrue())

		gvk := schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "DockerCluster"}
		Expect(docker.readAll(ctx, gvk)).To(Equal(docker.seen[gvk]), "reading in the storage version needs no conversion")
	})
})

// stored returns all versions in which objects of the provider's kinds may be stored.
func (c *chain) stored(ctx context.Context) []string {
	GinkgoHelper()

	var stored []string
	for _, crd := range c.crds(ctx) {
		stored = append(stored, crd.Status.StoredVersions...)
	}

	return stored
}

const coreOldObjects = `
apiVersion: cluster.x-k8s.io/v1alpha4
kind: MachineSet
spec:
  clusterName: cluster
  replicas: 2
  selector: {matchLabels: {set: a}}
  template:
    metadata: {labels: {set: a}}
    spec:
      clusterName: cluster
      version: v1.30.1
      bootstrap: {dataSecretName: data}
      infrastructureRef:
        apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
        kind: DockerMachineTemplate
        name: workers
        namespace: default
`

const coreObjects = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, serviceDomain: cluster.local}
  controlPlaneEndpoint: {host: 10.1.2.3, port: 6443}
  infrastructureRef:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
    kind: DockerCluster
    name: cluster
    namespace: default
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
spec:
  clusterName: cluster
  version: v1.30.1
  nodeDrainTimeout: 1m30s
  bootstrap: {dataSecretName: data}
  infrastructureRef:
    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
    kind: DockerMachine
    name: machine
    namespace: default
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
spec:
  clusterName: cluster
  replicas: 3
  selector: {matchLabels: {deployment: a}}
  template:
    metadata: {labels: {deployment: a}}
    spec:
      clusterName: cluster
      bootstrap: {dataSecretName: data}
      infrastructureRef:
        apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
        kind: DockerMachineTemplate
        name: workers
        namespace: default
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineHealthCheck
spec:
  clusterName: cluster
  selector: {matchLabels: {deployment: a}}
  nodeStartupTimeout: 10m0s
  unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m0s}]
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDrainRule
spec:
  drain: {behavior: Skip}
---
apiVersion: addons.cluster.x-k8s.io/v1beta1
kind: ClusterResourceSet
spec:
  clusterSelector: {matchLabels: {cni: calico}}
  strategy: ApplyOnce
  resources: [{kind: ConfigMap, name: calico}]
---
apiVersion: ipam.cluster.x-k8s.io/v1alpha1
kind: IPAddressClaim
spec:
  poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: pool}
---
apiVersion: ipam.cluster.x-k8s.io/v1beta1
kind: IPAddress
spec:
  address: 10.0.0.7
  prefix: 24
  claimRef: {name: ipaddressclaim}
  poolRef: {apiGroup: ipam.cluster.x-k8s.io, kind: InClusterIPPool, name: pool}
`

const dockerObjects = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerCluster
spec:
  controlPlaneEndpoint: {host: 10.1.2.3, port: 6443}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerMachine
spec:
  customImage: kindest/node:v1.30.1
  extraMounts: [{containerPath: /var/run/docker.sock, hostPath: /var/run/docker.sock}]
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerMachineTemplate
spec:
  template: {spec: {customImage: kindest/node:v1.30.1}}
`

const awsObjects = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
spec:
  region: eu-central-1
  sshKeyName: default
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachine
spec:
  instanceType: t3.large
  iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachineTemplate
spec:
  template: {spec: {instanceType: t3.large, rootVolume: {size: 80, type: gp3}}}
`

const azureObjects = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureCluster
spec:
  location: westeurope
  resourceGroup: capz
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureMachine
spec:
  vmSize: Standard_D2s_v3
  osDisk: {osType: Linux, diskSizeGB: 128}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: AzureASOManagedCluster
spec:
  controlPlaneEndpoint: {host: example.com, port: 443}
`
