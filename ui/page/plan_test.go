package page_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/upgradeplan"
	"github.com/capstan-project/capstan/ui/page"
)

// offers are versions of core for two contracts.
func offers() map[string]page.Offer {
	core := providers()[0]

	versions := []upgradeplan.Version{
		{Version: "v2.0.0", Contract: "v1beta3"}, {Version: "v1.2.0", Contract: "v1beta2"},
	}

	return map[string]page.Offer{
		page.ID(core.Kind, core.Namespace, core.Name): {Asked: now, Versions: versions},
	}
}

// TestPlan checks the plans from the status of resources, from sources, and from old answers of them.
func TestPlan(t *testing.T) {
	g := NewWithT(t)
	core := providers()[0]
	aws := providers()[2]
	aws.Conditions = append(aws.Conditions,
		condition("CRDsSafe", metav1.ConditionFalse, "CRDChangesUnsafe", "awsclusters.example.com: /spec/region is removed"))
	waiting := facts.Provider{Kind: "AddonProvider", Namespace: "a", Name: "b", Label: "addon-b"}
	all := []facts.Provider{core, aws, waiting}

	main := func(offers map[string]page.Offer) string {
		_, document := render(t, page.NewPlan(frame(), all, offers))
		return texts(document, "main")[0]
	}

	fromStatus := main(nil)
	for _, want := range []string{
		"Contract v1beta2 capstan upgrade apply --dry-run --contract v1beta2 Copy",
		"cluster-api v1.0.0 → to v1.2.0 , contract v1beta2 " +
			"capstan diff --version v1.2.0 cluster-api -n cluster-api-system",
		"infrastructure-aws v1.0.0 stays, contract v1beta2 the resource asks for v1.1.0 the API server refused Service aws",
		"infrastructure-aws awsclusters.example.com: /spec/region is removed",
		"cluster-api, infrastructure-aws from the status of the resource, which has those for the contracts in use addon-b",
		"addon-b left out until installed",
	} {
		g.Expect(fromStatus).To(ContainSubstring(want))
	}

	g.Expect(fromStatus).NotTo(ContainSubstring("being asked"))

	id := page.ID(string(v1alpha2.CoreProviderType), core.Namespace, core.Name)
	g.Expect(main(map[string]page.Offer{id: {}})).To(ContainSubstring("the source is being asked"))

	answered := main(map[string]page.Offer{id: {
		Versions: []upgradeplan.Version{{Version: "v2.0.0", Contract: "v1beta3"}}, Asked: now.Add(-2 * time.Hour),
		Problem: "no such host",
	}})
	g.Expect(answered).To(And(
		ContainSubstring("Contract v1beta3 Not possible: no known version of infrastructure-aws works"),
		ContainSubstring("cluster-api from the source, 120m ago The source cannot be read: no such host"),
	))

	g.Expect(main(map[string]page.Offer{id: {Problem: "no such host"}})).To(And(
		ContainSubstring("v1.2.0"), ContainSubstring("The source cannot be read: no such host")))
}
