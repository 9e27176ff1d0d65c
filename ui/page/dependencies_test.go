package page_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/usage"
	"github.com/capstan-project/capstan/ui/page"
)

// mapped returns providers of two clusters, of which some need others.
func mapped() []facts.Provider {
	all := providers() // core, bootstrap-kubeadm, infrastructure-aws, addon-helm

	all[0].Contract = "v1beta2"
	all[2].Contract = "v1beta1"
	all[2].DependsOn = []string{"addon-helm", "ipam-missing"}
	all[2].Conditions = append(all[2].Conditions, condition(v1alpha2.PreflightCheckCondition, "False",
		v1alpha2.WaitingForDependenciesReason, "waiting for the providers in spec.dependsOn"))

	remote := provider(v1alpha2.InfrastructureProviderType, "docker", "Ready", "")
	remote.Remote, remote.Cluster = true, "edge/kubeconfig/value"

	return append(all, remote)
}

// uses returns the objects of the kinds of aws.
func uses() map[string]page.Use {
	const machines = "awsmachines.infrastructure.cluster.x-k8s.io"

	return map[string]page.Use{
		"InfrastructureProvider/aws-system/aws": {Asked: now, Usage: facts.Usage{
			Kinds: []usage.Kind{
				{Name: machines, Count: 3, Examples: []string{"default/a"}, Clusters: []string{"default/prod", "default/test"}},
				{Name: "awsclusters.infrastructure.cluster.x-k8s.io", Problem: "no answer"},
			},
			Searched: []string{machines}, Unseen: 2,
		}},
		"CoreProvider/cluster-api-system/cluster-api": {Asked: now, Usage: facts.Usage{Kinds: []usage.Kind{
			{Name: "clusters.cluster.x-k8s.io", Count: 1, Clusters: []string{"default/prod"}},
		}}},
		"BootstrapProvider/kubeadm-system/kubeadm": {},
	}
}

// TestDependencies checks what the list says of providers that need others, wait, or are in use.
func TestDependencies(t *testing.T) {
	g := NewWithT(t)
	_, document := render(t, page.NewDependencies(frame(), mapped(), uses()))
	main := texts(document, "main")[0]

	for _, want := range []string{
		"This cluster 4 providers, of which 2 wait or fail",
		"Cluster of the kubeconfig in Secret edge/kubeconfig/value 1 provider Infrastructure 1",
		"Waiting or failing 2 bootstrap-kubeadm v1.0.0 WaitingForCoreProviderReady Namespace kubeadm-system " +
			"Contract v1beta2 Needs cluster-api waiting for core capstan status bootstrap-kubeadm -n kubeadm-system Copy",
		"Contract v1beta1, with core's v1beta2 Needs cluster-api , addon-helm , ipam-missing (not found) " +
			"waiting for the providers in spec.dependsOn " +
			"In use: 3 objects, of Clusters default/prod, default/test " +
			"capstan status infrastructure-aws -n aws-system Copy " +
			"capstan delete --dry-run infrastructure-aws -n aws-system",
		"Add-ons 1 addon-helm v1.0.0 Suspended Namespace helm-system Contract v1beta2 Needs cluster-api " +
			"Needed by infrastructure-aws",
		"Needed by all other providers of the cluster In use: 1 object, of Cluster default/prod",
		"The objects of 1 provider are being looked up.",
		"default/prod has objects of cluster-api , infrastructure-aws default/test has objects of infrastructure-aws",
	} {
		g.Expect(main).To(ContainSubstring(want))
	}
}

// TestNoDependencies checks the page of a cluster without providers, and of one without core.
func TestNoDependencies(t *testing.T) {
	g := NewWithT(t)
	_, document := render(t, page.NewDependencies(frame(), nil, nil))
	g.Expect(texts(document, "main")[0]).To(And(
		ContainSubstring("There are no providers."), ContainSubstring("None are known.")))

	_, document = render(t, page.NewDependencies(frame(), mapped()[1:2], nil))
	g.Expect(texts(document, "main")[0]).To(ContainSubstring("Needs cluster-api (not found)"))
}

// TestManyDependencies checks that the list has all providers, and that cycles end.
func TestManyDependencies(t *testing.T) {
	g := NewWithT(t)
	all := []facts.Provider{provider(v1alpha2.CoreProviderType, "cluster-api", "Ready", "")}

	for i := range 500 {
		v := provider(v1alpha2.ProviderTypes()[1+i%6], fmt.Sprintf("p-%03d", i), "Ready", "")
		v.DependsOn = []string{v1alpha2.ProviderTypes()[1+(i+1)%500%6].Label(fmt.Sprintf("p-%03d", (i+1)%500))}
		all = append(all, v)
	}

	_, document := render(t, page.NewDependencies(frame(), all, nil))
	g.Expect(texts(document, "li")).To(HaveLen(501))
	g.Expect(texts(document, "main")[0]).To(ContainSubstring("Needs cluster-api , bootstrap-p-000 Needed by"))
}

// TestManyClusters checks that this cluster is the first of many.
func TestManyClusters(t *testing.T) {
	g := NewWithT(t)

	var all []facts.Provider

	for i := range 500 {
		v := provider(v1alpha2.InfrastructureProviderType, fmt.Sprintf("p-%d", i), "Ready", "")
		v.Remote, v.Cluster = true, fmt.Sprintf("edge/kubeconfig-%d/value", i)
		all = append(all, v)
	}

	_, document := render(t, page.NewDependencies(frame(), append(all, mapped()[0]), nil))
	g.Expect(texts(document, "h2")[0]).To(HavePrefix("This cluster"))
	g.Expect(texts(document, "h2")).To(HaveLen(502))
}

// TestHolders checks that the Clusters which keep providers are bounded.
func TestHolders(t *testing.T) {
	g := NewWithT(t)

	var all []facts.Provider

	found := map[string]page.Use{}

	for i := range 100 {
		v := provider(v1alpha2.InfrastructureProviderType, fmt.Sprintf("p-%d", i), "Ready", "")
		all = append(all, v)
		found[page.ID(v.Kind, v.Namespace, v.Name)] = page.Use{Asked: now, Usage: facts.Usage{Kinds: []usage.Kind{
			{Name: "x", Count: 2, Clusters: []string{"default/all", fmt.Sprintf("default/c-%d", i)}},
		}}}
	}

	_, document := render(t, page.NewDependencies(frame(), all, found))
	main := texts(document, "main")[0]
	g.Expect(main).To(MatchRegexp(`default/all has objects of (infrastructure-p-\d+ , ){11}\S+ and 88 more`))
	g.Expect(main).To(ContainSubstring("51 more Clusters are not listed."))
}
