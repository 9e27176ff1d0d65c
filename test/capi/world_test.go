package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/capi/managers"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

const (
	operatorNamespace    = "capstan-system"
	certManagerNamespace = "cert-manager"
)

// load reads a release. Clusters with a ClusterClass need the variable.
func load(ctx context.Context, label, version string) *harness.Release {
	GinkgoHelper()

	release, err := harness.Load(ctx, os.Getenv(testproviders.Variable), harness.Wanted{
		Label: label, Version: version, Variables: map[string]string{"CLUSTER_TOPOLOGY": "true"},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(release.Bundle.Version).To(Equal(version))

	return release
}

// request makes the releases of a step available and requests all of them in one `kubectl apply`. version returns what
// to request for a version: itself, or a range.
func request(ctx context.Context, step managers.Step, version func(string) string) {
	GinkgoHelper()

	var manifests strings.Builder

	for _, label := range managers.Labels {
		release := load(ctx, label, step[label])
		Expect(release.Prepare(ctx, admin)).To(Succeed())

		p := release.Resource()
		p.GetSpec().Version = version(step[label])
		spec, err := json.Marshal(p.GetSpec())
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&manifests, "---\napiVersion: %s\nkind: %s\nmetadata: {namespace: %s, name: %s}\nspec: %s\n",
			v1alpha2.GroupVersion, p.ProviderType(), p.GetNamespace(), p.GetName(), spec)
	}

	apply(ctx, manifests.String())
}

// provider returns an empty resource of a provider, to be read.
func provider(label string) v1alpha2.Provider {
	providerType, name := v1alpha2.ParseLabel(label)
	p := providerType.New()
	p.SetNamespace(namespaceOf(label))
	p.SetName(name)

	return p
}

func namespaceOf(label string) string { return label + "-system" }

// versions returns the versions of the providers that are ready, by label. Of others, it returns the message of their
// condition.
func versions(ctx context.Context) managers.Step {
	all := managers.Step{}

	for _, label := range managers.Labels {
		p := provider(label)

		err := admin.Get(ctx, client.ObjectKeyFromObject(p), p)
		switch {
		case err != nil:
			all[label] = err.Error()
		case conditions.IsReady(p) && p.GetStatus().ObservedGeneration == p.GetGeneration():
			all[label] = *p.GetStatus().InstalledVersion
		default:
			all[label] = conditions.GetMessage(p, v1alpha2.ReadyCondition)
		}
	}

	return all
}

// pods returns the pods in a namespace.
func pods(ctx context.Context, namespace string) []corev1.Pod {
	GinkgoHelper()

	list := &corev1.PodList{}
	Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())

	return list.Items
}

// deployments returns the Deployments in a namespace, of which there must be one.
func deployments(ctx context.Context, g Gomega, namespace string) []appsv1.Deployment {
	list := &appsv1.DeploymentList{}
	g.Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	g.Expect(list.Items).NotTo(BeEmpty())

	return list.Items
}

// available expects that all Deployments in a namespace have as many available pods as they should, of their newest
// revision only, and that no other pods are left: those that terminate still answer webhooks.
func available(ctx context.Context, g Gomega, namespace string) {
	for _, d := range deployments(ctx, g, namespace) {
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation), d.Name)
		g.Expect(d.Status.Replicas).To(Equal(*d.Spec.Replicas), d.Name)
		g.Expect(d.Status.UpdatedReplicas).To(Equal(*d.Spec.Replicas), d.Name)
		g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas), d.Name)
	}

	g.Expect(pods(ctx, namespace)).NotTo(ContainElement(HaveField("DeletionTimestamp", Not(BeNil()))))
}

// apply creates or updates objects.
func apply(ctx context.Context, manifests string) {
	GinkgoHelper()

	bedtest.Apply(ctx, GinkgoT(), cluster, manifests)
}

// remove deletes objects that still exist, and waits until they are gone.
func remove(ctx context.Context, manifests string) {
	GinkgoHelper()

	cmd := cluster.Command(ctx, "kubectl", "delete", "-f", "-", "--ignore-not-found", "--timeout=3m")
	cmd.Stdin = strings.NewReader(manifests)
	bedtest.Output(GinkgoT(), cmd)
}

// run runs a program of the bed, as a user would, and returns its standard output.
func run(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	return bedtest.Output(GinkgoT(), cluster.Command(ctx, name, args...))
}

// clusterInMemory returns the manifests that clusterctl generates for a Cluster of the docker provider, whose Machines
// are simulated.
func clusterInMemory(ctx context.Context, name, version string) string {
	GinkgoHelper()

	config := filepath.Join(GinkgoT().TempDir(), "clusterctl.yaml")
	components := filepath.Join(os.Getenv(testproviders.Variable), "infrastructure-docker", version,
		"infrastructure-components.yaml")
	Expect(os.WriteFile(config, fmt.Appendf(nil,
		"providers: [{name: docker, type: InfrastructureProvider, url: %q}]\n", components), 0o600)).To(Succeed())

	cmd := cluster.Command(ctx, tools.Clusterctl, "generate", "cluster", name, "--config", config,
		"--infrastructure", "docker:"+version, "--flavor", "in-memory", "--target-namespace", "default",
		"--kubernetes-version", "v1.34.0", "--control-plane-machine-count", "1", "--worker-machine-count", "2")
	// clusterctl takes it for the key of its configuration.
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, testproviders.Variable+"=") })
	cmd.Env = append(cmd.Env, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")

	return bedtest.Output(GinkgoT(), cmd)
}
