package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/upgradeplan"
)

// Plan is the page with the available upgrades.
type Plan struct {
	Frame

	// Contracts has a plan for each contract that core can have.
	Contracts []Contract
	// Offers are where the versions come from.
	Offers []Offered
	// Findings are what is known about CRDs that may prevent an upgrade.
	Findings []Finding
	// Command and CRDsCommand print the same.
	Command, CRDsCommand string
}

// Contract is a plan that upgrades all providers to a contract.
type Contract struct {
	Name    string
	Steps   []Step
	Blocked string
	// Upgrades is set if the plan changes any provider.
	Upgrades bool
	// Unknown are the providers whose newest versions are not known.
	Unknown []string
	Command string
}

// Step is the upgrade of a provider. To is empty if there is none. Wanted is the version that its resource asks for,
// unless that is installed, and Waits why it is not.
type Step struct {
	Label, Path, From, To, Contract string
	Wanted, Waits                   string
	// Command prints what the upgrade would change, and PreviewPath is that of the page with that; empty for none.
	Command, PreviewPath string
}

// Offered is where the versions of some providers come from. Its level is "good", "busy" while that is asked, or "bad".
type Offered struct {
	Level, Text, Problem string
	Labels               []string
	// Command prints the versions of a single provider.
	Command string
}

// Finding is a condition of a provider's CRDs.
type Finding struct{ Label, Path, Message string }

// Offer is what the source of a provider has answered.
type Offer struct {
	// Versions are newest first, and Asked is when the source gave them; zero if it has not yet.
	Versions []upgradeplan.Version
	Asked    time.Time
	// Problem is why the source has not answered since; empty if it has.
	Problem string
}

// NewPlan returns the page with the upgrades of providers, which are in clusterctl's order of installation. Offers are
// the answers of their sources by ID; nil if sources are not asked.
func NewPlan(frame Frame, providers []facts.Provider, offers map[string]Offer) *Plan {
	frame.Current = "plan"

	p := &Plan{Frame: frame, Command: "capstan upgrade plan", CRDsCommand: "capstan status"}

	var installed []upgradeplan.Provider

	known := map[string]facts.Provider{}

	for _, v := range providers {
		known[v.Label] = v
		p.addFindings(v)

		if v.Version == "" || v.Contract == "" {
			p.addOffer(v, Offered{Level: levelBusy, Text: "left out until installed"})
			continue
		}

		offered, versions := newOffered(frame, v, offers)
		p.addOffer(v, offered)
		installed = append(installed, upgradeplan.Provider{
			Label: v.Label, Version: v.Version, Contract: v.Contract, Available: versions, Unknown: offered.Problem,
		})
	}

	printed := map[string]bool{}
	for _, plan := range upgradeplan.New(installed) {
		p.Contracts = append(p.Contracts, newContract(frame, plan, known, printed))
	}

	return p
}

// addOffer adds where the versions of a provider come from, to those of others of which the same can be said.
func (p *Plan) addOffer(v facts.Provider, offered Offered) {
	same := func(o Offered) bool {
		return o.Level == offered.Level && o.Text == offered.Text && o.Problem == offered.Problem
	}

	if at := slices.IndexFunc(p.Offers, same); at >= 0 {
		p.Offers[at].Labels = append(p.Offers[at].Labels, v.Label)
		p.Offers[at].Command = ""

		return
	}

	offered.Labels = []string{v.Label}
	p.Offers = append(p.Offers, offered)
}

// newOffered returns where the versions of a provider come from, and the versions: those of its source, or until that
// has answered those in the status of the resource.
func newOffered(frame Frame, v facts.Provider, offers map[string]Offer) (Offered, []upgradeplan.Version) {
	offer := offers[ID(v.Kind, v.Namespace, v.Name)]
	offered := Offered{
		Level: levelGood, Problem: offer.Problem, Command: "capstan versions " + quote(v.Label),
	}

	if !offer.Asked.IsZero() {
		offered.Text = "from the source, " + frame.age(offer.Asked) + " ago"
		if offer.Problem != "" {
			offered.Level = levelBad
		}

		return offered, offer.Versions
	}

	offered.Text = "from the status of the resource, which has those for the contracts in use"

	switch {
	case offer.Problem != "":
		offered.Level = levelBad
	case offers != nil:
		offered.Level = levelBusy
		offered.Text += "; the source is being asked"
	}

	versions := make([]upgradeplan.Version, 0, len(v.Upgrades))
	for _, u := range v.Upgrades {
		versions = append(versions, upgradeplan.Version{Version: u.Version, Contract: u.Contract})
	}

	slices.Reverse(versions) // the newest is last

	return offered, versions
}

// newContract returns the plan of a contract. What another plan has printed is left out.
func newContract(
	frame Frame, plan upgradeplan.Plan, known map[string]facts.Provider, printed map[string]bool,
) Contract {
	c := Contract{
		Name:     plan.Contract,
		Blocked:  plan.Blocked,
		Upgrades: plan.Upgrades(),
		Unknown:  plan.Unknown(),
		Command:  "capstan upgrade apply --dry-run --contract " + quote(plan.Contract),
	}

	for _, step := range plan.Steps {
		v := known[step.Provider]
		item := Step{
			Label: v.Label, Path: frame.Base + providerPath(v), From: step.From, To: step.To, Contract: step.Contract,
			Wanted: v.Asks(),
		}

		if waits := shorten(waitsFor(v)); item.Wanted != "" && !printed[waits] {
			item.Waits, printed[waits] = waits, true
		}

		if step.To != "" {
			item.PreviewPath = frame.previewPath(v, step.To)

			if c := command(v, "diff", "--version", step.To); !printed[c] {
				item.Command, printed[c] = c, true
			}
		}

		c.Steps = append(c.Steps, item)
	}

	return c
}

// addFindings adds the conditions of a provider's CRDs that are not good.
func (p *Plan) addFindings(v facts.Provider) {
	for _, conditionType := range []string{v1alpha2.CRDsSafeCondition, v1alpha2.CRDsMigratedCondition} {
		if c := v.Condition(conditionType); c != nil && !facts.IsGood(*c) {
			p.Findings = append(p.Findings, Finding{
				Label: v.Label, Path: p.Base + providerPath(v), Message: cmp.Or(c.Message, c.Reason),
			})
		}
	}
}
