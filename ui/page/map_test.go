package page_test

import (
	"fmt"
	"strings"
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

// TestMap checks that the list says what the drawing does, and more.
func TestMap(t *testing.T) {
	g := NewWithT(t)
	out, document := render(t, page.NewMap(frame(), mapped(), uses()))
	main := texts(document, "main")[0]

	for _, want := range []string{
		"This cluster 4 providers, of which 2 wait or fail",
		"Cluster of the kubeconfig in Secret edge/kubeconfig/value 1 provider Map of the providers",
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

	g.Expect(out).To(ContainSubstring(`<svg role="img" aria-labelledby="drawing-0-title drawing-0-text"`))
	g.Expect(texts(document, "svg")[0]).To(And(
		ContainSubstring("infrastructure-aws v1.0.0 · InstallFailed waits for others"),
		ContainSubstring("ipam-missing not found"),
		ContainSubstring("cluster-api v1.0.0 · Ready in use by 1 Cluster"),
	))
}

// TestEmptyMap checks the map of a cluster without providers, and of one without core.
func TestEmptyMap(t *testing.T) {
	g := NewWithT(t)
	_, document := render(t, page.NewMap(frame(), nil, nil))
	g.Expect(texts(document, "main")[0]).To(And(
		ContainSubstring("There are no providers."), ContainSubstring("None are known.")))

	_, document = render(t, page.NewMap(frame(), mapped()[1:2], nil))
	g.Expect(texts(document, "main")[0]).To(ContainSubstring("Needs cluster-api (not found)"))
}

// TestManyOnMap checks that the map stays readable: its drawings and lists are bounded.
func TestManyOnMap(t *testing.T) {
	core := provider(v1alpha2.CoreProviderType, "cluster-api", "Ready", "")
	many := func(change func(i int, v *facts.Provider)) []facts.Provider {
		all := []facts.Provider{core}

		for i := range 500 {
			v := provider(v1alpha2.ProviderTypes()[1+i%6], fmt.Sprintf("p-%03d", i), "Ready", "")
			change(i, &v)
			all = append(all, v)
		}

		return all
	}

	for name, c := range map[string]struct {
		change  func(i int, v *facts.Provider)
		boxes   int
		content string
	}{
		"quiet": {func(int, *facts.Provider) {}, 7, "Infrastructure 83 providers"},
		"some failing": {func(i int, v *facts.Provider) {
			if i == 4 {
				v.Ready = "InstallFailed"
				v.Conditions[0].Status, v.Conditions[0].Reason = "False", "InstallFailed"
			}
		}, 8, "v1.0.0 · InstallFailed"},
		"all waiting": {func(_ int, v *facts.Provider) {
			v.Ready = "WaitingForCoreProviderReady"
			v.Conditions[0].Status, v.Conditions[0].Reason = "False", v.Ready
		}, 7, "84 progressing"},
		"a chain": {func(i int, v *facts.Provider) {
			if i >= 6 {
				v.DependsOn = []string{v1alpha2.ProviderTypes()[1+(i-1)%6].Label(fmt.Sprintf("p-%03d", i-1))}
			}
		}, 18, "Add-ons 82 providers"},
		"a cycle": {func(i int, v *facts.Provider) {
			v.DependsOn = []string{v1alpha2.ProviderTypes()[1+(i+1)%500%6].Label(fmt.Sprintf("p-%03d", (i+1)%500))}
		}, 13, "Add-ons 82 providers"},
		"missing ones": {func(i int, v *facts.Provider) { v.DependsOn = []string{fmt.Sprintf("ipam-missing-%d", i)} },
			8, "others not found"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, document := render(t, page.NewMap(frame(), many(c.change), nil))
			drawing := texts(document, "svg")[0]

			g.Expect(drawing).To(ContainSubstring(c.content))
			g.Expect(texts(document, "g")).To(HaveLen(c.boxes))
			g.Expect(texts(document, "li")).To(HaveLen(501), "the list has all")
		})
	}
}

// TestManyClusters checks that only some of many clusters have a drawing.
func TestManyClusters(t *testing.T) {
	g := NewWithT(t)

	var all []facts.Provider

	for i := range 500 {
		v := provider(v1alpha2.InfrastructureProviderType, fmt.Sprintf("p-%d", i), "Ready", "")
		v.Remote, v.Cluster = true, fmt.Sprintf("edge/kubeconfig-%d/value", i)
		all = append(all, v)
	}

	_, document := render(t, page.NewMap(frame(), append(all, mapped()[0]), nil))
	g.Expect(texts(document, "svg")).To(HaveLen(8))
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

	_, document := render(t, page.NewMap(frame(), all, found))
	main := texts(document, "main")[0]
	g.Expect(main).To(MatchRegexp(`default/all has objects of (infrastructure-p-\d+ , ){11}\S+ and 88 more`))
	g.Expect(main).To(ContainSubstring("51 more Clusters are not listed."))
}

// TestDrawing checks that boxes neither overlap nor leave the drawing.
func TestDrawing(t *testing.T) {
	for name, all := range map[string][]facts.Provider{"sample": mapped(), "one": mapped()[:1], "no core": mapped()[1:]} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			for _, c := range page.NewMap(frame(), all, uses()).Clusters {
				d := c.Drawing
				g.Expect(d.Boxes).NotTo(BeEmpty())

				for i, a := range d.Boxes {
					g.Expect(a.X).To(BeNumerically(">=", 0))
					g.Expect(a.Y).To(BeNumerically(">=", 0))
					g.Expect(a.X + a.Width).To(BeNumerically("<=", d.Width))
					g.Expect(a.Y + a.Height).To(BeNumerically("<=", d.Height))

					for _, line := range a.Lines {
						g.Expect(line.Y).To(And(BeNumerically(">", a.Y), BeNumerically("<", a.Y+a.Height)))
					}

					for _, b := range d.Boxes[i+1:] {
						apart := a.X+a.Width < b.X || b.X+b.Width < a.X || a.Y+a.Height < b.Y || b.Y+b.Height < a.Y
						g.Expect(apart).To(BeTrue(), "%v %v", a, b)
					}
				}
			}
		})
	}
}

// TestLayers checks that each box is to the right of what it needs, and that cycles end.
func TestLayers(t *testing.T) {
	chain := func(needs map[string][]string, names ...string) map[string]int {
		all := []facts.Provider{provider(v1alpha2.CoreProviderType, "cluster-api", "Ready", "")}

		for _, name := range names {
			v := provider(v1alpha2.AddonProviderType, name, "Ready", "")
			for _, needed := range needs[name] {
				v.DependsOn = append(v.DependsOn, "addon-"+needed)
			}

			all = append(all, v)
		}

		columns := map[string]int{}
		for _, b := range page.NewMap(frame(), all, nil).Clusters[0].Drawing.Boxes {
			columns[strings.TrimPrefix(b.Lines[0].Text, "addon-")] = b.X
		}

		return columns
	}

	g := NewWithT(t)
	at := chain(map[string][]string{"a": {"b", "c"}, "b": {"c"}}, "a", "b", "c")
	g.Expect(at["cluster-api"]).To(BeNumerically("<", at["c"]))
	g.Expect(at["c"]).To(BeNumerically("<", at["b"]))
	g.Expect(at["b"]).To(BeNumerically("<", at["a"]))

	at = chain(map[string][]string{"a": {"b"}, "b": {"a"}, "c": {"c", "missing"}, "d": {"a"}}, "a", "b", "c", "d")
	g.Expect(at["cluster-api"]).To(BeNumerically("<", at["c"]))
	g.Expect(at["c"]).To(Equal(at["b"]), "what it needs of itself does not count")
	g.Expect(at["b"]).To(BeNumerically("<", at["a"]))
	g.Expect(at["a"]).To(BeNumerically("<", at["d"]))
}
