package ui_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/upgradeplan"
	"github.com/capstan-project/capstan/ui"
)

const upgradePage = "providers/InfrastructureProvider/capa-system/azure/upgrade?to="

// newPreviewSite returns a site with azure, whose status has an upgrade to v2.1.0 and whose source one to v3.0.0.
func newPreviewSite(t *testing.T, read ui.ReadPreview, change ...func(*ui.Options)) *site {
	t.Helper()

	offered := func(context.Context, v1alpha2.Provider) ([]upgradeplan.Version, error) {
		return []upgradeplan.Version{{Version: "v3.0.0", Contract: "v1beta2"}}, nil
	}
	s := newSite(t, append(change, func(o *ui.Options) {
		o.Offers = ui.NewOffers(t.Context(), offered, o.Feed)
		o.Previews = ui.NewPreviews(t.Context(), read, o.Feed)
	})...)
	s.cluster.set(ready("azure"))

	return s
}

// upgraded is what an upgrade would change, with texts that run code wherever they are not escaped.
func upgraded() facts.Comparison {
	return facts.Comparison{
		Changes: []objectdiff.Change{
			{
				Object: "Deployment capz-system/manager", Kind: objectdiff.Changed,
				Diff: "@@ -7,2 +7,2 @@\n spec:\n-  image: registry.example.com/capz:v1.0.0\n" +
					"+  image: registry.example.com/capz:v2.1.0\n",
			},
			{Object: "ConfigMap " + hostile, Kind: objectdiff.Created, Diff: "@@ -0,0 +1 @@\n+" + hostile + "\n"},
		},
		CRDs: []facts.CRDChange{
			{Name: "azureclusters.example.com", Fields: []string{"/spec/versions/v1/schema", hostile}},
			{Name: hostile, Created: true},
		},
		Findings: []facts.CRDFinding{{
			Level: "Error", CRD: "azureclusters.example.com",
			Text: "azureclusters.example.com v1 spec.region: is removed" + hostile,
		}},
		Warnings: []string{"spec.manager has no effect " + hostile},
	}
}

// TestPreviews checks that an upgrade is only computed when its page is opened, for versions that are offered, and
// once for all viewers.
func TestPreviews(t *testing.T) {
	g := NewWithT(t)
	result := make(chan error)

	var computed atomic.Int32

	s := newPreviewSite(t, func(ctx context.Context, p v1alpha2.Provider) (facts.Comparison, error) {
		computed.Add(1)

		if p.GetSpec().Version == "v3.0.0" {
			return facts.Comparison{}, errors.New("no such host")
		}

		select {
		case err := <-result:
			return upgraded(), err
		case <-ctx.Done():
			return facts.Comparison{}, ctx.Err()
		}
	})

	for _, version := range []string{"", "v9.9.9", "v3.0.0"} { // the source has not been asked yet
		response, body := get(t, s.url+upgradePage+version, nil)
		g.Expect(response.code).To(Equal(http.StatusNotFound))
		g.Expect(body).To(ContainSubstring("No upgrade of infrastructure-azure to the version &#34;" + version))
	}

	_, body := get(t, s.url+"plan", nil)
	g.Expect(body).To(ContainSubstring(upgradePage + "v2.1.0"))
	g.Expect(computed.Load()).To(BeZero(), "a link computes nothing")

	events := s.follow(t)

	for range 3 {
		_, body = get(t, s.url+upgradePage+"v2.1.0", nil)
		g.Expect(body).To(ContainSubstring("is being computed"))
	}

	result <- nil

	g.Eventually(events).Should(Receive(Equal("changed: InfrastructureProvider/capa-system/azure")))
	g.Eventually(func() string {
		_, body = get(t, s.url+upgradePage+"v2.1.0", nil)
		return body
	}).Should(And(
		ContainSubstring("Objects: 1 to create, 1 to change, 0 to delete. CRDs: 2 to create or change."),
		ContainSubstring("azureclusters.example.com v1 spec.region: is removed"),
		ContainSubstring("<ins>&#43;  image: registry.example.com/capz:v2.1.0</ins>"),
		ContainSubstring("spec.manager has no effect"), Not(ContainSubstring("<script>alert")),
	))
	g.Expect(computed.Load()).To(BeEquivalentTo(1))

	g.Eventually(func() string { // until the source has answered
		_, body = get(t, s.url+upgradePage+"v3.0.0", nil)
		return body
	}).Should(ContainSubstring("cannot be computed: no such host"))

	// A rollback that the resource asks for comes first.
	p := ready("azure")
	p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: new(int64(3))}
	s.cluster.set(p)

	_, body = get(t, s.url+upgradePage+"v2.1.0", nil)
	g.Expect(body).To(ContainSubstring("spec.release.rollbackTo is 3, so nothing but this revision is installed"))
	g.Expect(computed.Load()).To(BeEquivalentTo(2))
}

// TestPreviewsAreBounded checks how many previews are computed at the same time, and that no more are accepted than can
// be remembered.
func TestPreviewsAreBounded(t *testing.T) {
	g := NewWithT(t)

	var computing, most atomic.Int32

	finish := make(chan struct{})
	s := newPreviewSite(t, func(ctx context.Context, _ v1alpha2.Provider) (facts.Comparison, error) {
		most.Store(max(most.Load(), computing.Add(1)))
		defer computing.Add(-1)

		select {
		case <-finish:
		case <-ctx.Done():
		}

		return facts.Comparison{}, ctx.Err()
	})

	p := ready("azure")

	versions := []string{"v1.0.1", "v1.0.2", "v1.0.3", "v1.0.4", "v1.0.5", "v1.0.6", "v1.0.7", "v1.0.8", "v1.0.9"}
	for _, suffix := range []string{"0", "1"} {
		for _, version := range versions {
			p.GetStatus().AvailableUpgrades = append(p.GetStatus().AvailableUpgrades,
				v1alpha2.AvailableUpgrade{Version: version + suffix})
		}
	}

	s.cluster.set(p)

	refused := 0

	for _, u := range p.GetStatus().AvailableUpgrades {
		_, body := get(t, s.url+upgradePage+u.Version, nil)
		g.Expect(body).To(Or(ContainSubstring("is being computed"), ContainSubstring("too many others are being computed")))

		if !strings.Contains(body, "is being computed") {
			refused++
		}
	}

	g.Expect(refused).To(Equal(len(p.GetStatus().AvailableUpgrades) - 16))
	g.Eventually(computing.Load).Should(BeEquivalentTo(2))

	close(finish)

	last := p.GetStatus().AvailableUpgrades[len(p.GetStatus().AvailableUpgrades)-1].Version

	g.Eventually(func() string {
		_, body := get(t, s.url+upgradePage+last, nil)
		return body
	}).Should(ContainSubstring("Nothing would change."))
	g.Expect(most.Load()).To(BeEquivalentTo(2))
}

// TestNoPreviews checks that the page of the operator computes nothing, and names the command that does.
func TestNoPreviews(t *testing.T) {
	g := NewWithT(t)
	s := newSite(t)
	s.cluster.set(ready("azure"))

	_, body := get(t, s.url+"plan", nil)
	g.Expect(body).NotTo(ContainSubstring("/upgrade?to="))

	_, body = get(t, s.url+upgradePage+"v2.1.0", nil)
	g.Expect(body).To(And(
		ContainSubstring("The operator does not show what an upgrade would change"),
		ContainSubstring("capstan diff --version v2.1.0 infrastructure-azure -n capa-system"),
	))
}
