package ui_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/ui"
	"github.com/capstan-project/capstan/ui/page"
)

// TestWhy checks that the decision about a provider is computed when its page is opened, and again after a change.
func TestWhy(t *testing.T) {
	g := NewWithT(t)
	asked := make(chan v1alpha2.Provider)
	found := make(chan page.Explanation)

	s := newSite(t, func(o *ui.Options) {
		o.Explanations = ui.NewExplanations(t.Context(),
			func(ctx context.Context, p v1alpha2.Provider) (page.Explanation, error) {
				select {
				case asked <- p:
					return <-found, nil
				case <-ctx.Done():
					return page.Explanation{}, ctx.Err()
				}
			}, o.Feed)
	})

	_, body := get(t, s.url, nil)
	g.Expect(body).To(ContainSubstring("infrastructure-aws"))
	g.Consistently(asked).ShouldNot(Receive(), "the overview computes nothing")

	events := s.follow(t)

	_, body = get(t, s.url+awsPage, nil)
	g.Expect(body).To(ContainSubstring("What the operator decides is being computed"))
	g.Eventually(asked).Should(Receive(HaveField("GetName()", "aws")))

	found <- page.Explanation{Lists: []decide.List{{Name: "change", Rows: []decide.Row{
		{Name: "core is ready before what needs it", Verdict: decide.Decided, Decisive: true, Ends: hostile},
	}}}}

	g.Eventually(events).Should(Receive(Equal("changed: InfrastructureProvider/capa-system/aws")))

	_, body = get(t, s.url+awsPage, nil)
	g.Expect(body).To(And(
		ContainSubstring("Decided by the row &#34;core is ready before what needs it&#34; of change"),
		ContainSubstring("capstan why infrastructure-aws -n capa-system"), Not(ContainSubstring("<script>alert"))))
	g.Consistently(asked).ShouldNot(Receive(), "it was computed a moment ago")
}

// TestNoWhy checks that the page of the operator computes nothing, and names the command that does.
func TestNoWhy(t *testing.T) {
	_, body := get(t, newSite(t).url+awsPage, nil)
	NewWithT(t).Expect(body).To(And(
		ContainSubstring("The operator does not explain its decisions on this page"),
		ContainSubstring("capstan why infrastructure-aws -n capa-system")))
}
