package page_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/ui/page"
)

// TestRemovalOnPage checks what the page of a provider says about its removal.
func TestRemovalOnPage(t *testing.T) {
	all := mapped()
	core, aws, remote := all[0], all[2], all[4]
	use := uses()["InfrastructureProvider/aws-system/aws"]
	blocked := aws
	blocked.Conditions = []metav1.Condition{condition("Ready", "False", "DeletionBlocked", "3 objects exist")}

	for name, c := range map[string]struct {
		v         facts.Provider
		use       *page.Use
		has, lack string
	}{
		"objects": {
			aws, &use, "What blocks a removal as of 0s ago capstan delete --dry-run infrastructure-aws -n aws-system Copy " +
				"Kind Objects Such as Clusters " +
				"awsmachines.infrastructure.cluster.x-k8s.io 3 default/a default/prod, default/test " +
				"awsclusters.infrastructure.cluster.x-k8s.io no answer " +
				"You may not list the objects of 2 kinds, so there may be more.", "Nothing",
		},
		"not looked up yet": {aws, &page.Use{}, "The objects are being looked up.", "Nothing"},
		"unknown":           {aws, &page.Use{Problem: "no CRDs"}, "The objects cannot be looked up: no CRDs", "Nothing"},
		"nothing":           {aws, &page.Use{Asked: now}, "Nothing: there are no objects", "may not"},
		"not visible": {
			aws, &page.Use{Asked: now, Usage: facts.Usage{Unseen: 1}}, "You may not list the objects of 1 kind,", "Nothing",
		},
		"core": {
			core, &page.Use{Asked: now}, "Core is removed last, after bootstrap-kubeadm,", "infrastructure-docker",
		},
		"another":        {remote, nil, "Only the operator looks up the objects in another cluster.", "Nothing"},
		"being removed":  {blocked, &use, "The removal waits: 3 objects exist", "Nothing"},
		"not configured": {aws, nil, "Objects are not looked up.", "Nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			content := page.NewProvider(frame(), c.v, nil, "")
			content.ShowRemoval(c.v, c.use, all)

			_, document := render(t, content)

			var section *html.Node

			for n := range document.Descendants() {
				if attribute(n, "id") == "removal" {
					section = n
				}
			}

			g.Expect(text(section)).To(ContainSubstring(c.has))
			g.Expect(text(section)).NotTo(ContainSubstring(c.lack))
		})
	}
}
