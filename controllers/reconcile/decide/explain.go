package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Decision is what a list of rules was given, and the step that it returned.
type Decision struct {
	// Seen is a Beginning, an Installed, a Changing, an Upgrading or a Removing.
	Seen any
	Step Step
}

// Verdict is the outcome of a row.
type Verdict string

// The verdicts.
const (
	// Decided is that of the row that has ended its list.
	Decided Verdict = "Decided"
	// Passed is that of a row that has taken its action, after which the list continued.
	Passed Verdict = "Passed"
	// NotNeeded is that of a row that does not apply.
	NotNeeded Verdict = "NotNeeded"
	// NotReached is that of a row after the one that decided.
	NotReached Verdict = "NotReached"
)

// List is a list of rows in one pass.
type List struct {
	// Name of the list: begin, care, upgrade, change or removal.
	Name string `json:"name"`
	Rows []Row  `json:"rows"`
}

// Row is a rule and its outcome.
type Row struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Action that the row has taken; empty for none.
	Action Action `json:"action,omitempty"`
	// Result is how the row has ended the list, Message why, and Until when the operator decides again, if that is known.
	Result  string    `json:"result,omitempty"`
	Message string    `json:"message,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	// Ends says who or what ends what the decisive row describes.
	Ends string `json:"ends,omitempty"`
	// Decisive is set for the row that explains what is reported, if one does.
	Decisive bool `json:"decisive,omitempty"`
	// Inputs are what the row depends on.
	Inputs []Input `json:"inputs,omitempty"`

	weight weight
	ends   string
}

// Input is something that a row depends on.
type Input struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// From is what it was read from.
	From string `json:"from"`
	// Trust reports whether only the operator and its own API server can have written it.
	Trust Trust `json:"trust"`
}

// Trust is how far an input is trusted.
type Trust string

// The kinds of inputs. Claims are shown and make the operator careful.
const (
	Evidence Trust = "evidence"
	Claimed  Trust = "claim"
)

// Explain returns the lists that decisions come from, in their order, each with the outcomes of its rows. A list that
// began again, because what it was given has changed, is returned again. That of automatic upgrades is returned before
// the change, which asks it for a version.
func Explain(decisions []Decision) []List {
	var lists []List

	decisions = upgradesFirst(decisions)

	for len(decisions) > 0 {
		n := 1
		for n < len(decisions) && continues(decisions[n-1], decisions[n]) {
			n++
		}

		lists = append(lists, explain(decisions[:n]))
		decisions = decisions[n:]
	}

	markDecisive(lists)

	return lists
}

// upgradesFirst returns decisions in which those about automatic upgrades come before the change that asks for them.
func upgradesFirst(decisions []Decision) []Decision {
	ordered := make([]Decision, 0, len(decisions))

	for _, d := range decisions {
		at := len(ordered)
		for listName(d.Seen) == "upgrade" && at > 0 && listName(ordered[at-1].Seen) == "change" {
			at--
		}

		ordered = slices.Insert(ordered, at, d)
	}

	return ordered
}

// Decisive returns the row that explains what is reported, or nil for none, and a text that names it or says that there
// is none.
func Decisive(lists []List) (row *Row, text string) {
	for _, l := range lists {
		for i := range l.Rows {
			if l.Rows[i].Decisive {
				return &l.Rows[i], fmt.Sprintf("Decided by the row %q of %s", l.Rows[i].Name, l.Name)
			}
		}
	}

	if len(lists) == 0 {
		return nil, "No row of the rules was reached: what the condition says comes before them."
	}

	return nil, "No row of the rules has found anything that is left to do."
}

// Reached returns the rows up to the one that decided, and how many follow that were not reached.
func (l List) Reached() (rows []Row, left int) {
	rows = slices.DeleteFunc(slices.Clone(l.Rows), func(r Row) bool { return r.Verdict == NotReached })

	return rows, len(l.Rows) - len(rows)
}

// markDecisive marks the row that explains what is reported: the one that has ended the change or the removal, else the
// one that has found the release in another state than it should be in, else the one of care that waits.
func markDecisive(lists []List) {
	rules := []func(List, Row) bool{
		func(l List, r Row) bool {
			return r.Verdict == Decided && (l.Name != "care" && r.Result != "" || r.Action == Show)
		},
		func(_ List, r Row) bool { return r.weight == decisiveState },
		func(l List, r Row) bool { return l.Name == "care" && r.Verdict == Decided && !r.Until.IsZero() },
		func(_ List, r Row) bool { return r.weight == decisiveHealth },
	}

	for _, decides := range rules {
		for _, list := range slices.Backward(lists) {
			i := slices.IndexFunc(list.Rows, func(r Row) bool { return decides(list, r) })
			if i >= 0 {
				row := &list.Rows[i]
				row.Decisive = true
				row.Ends = row.ends

				return
			}
		}
	}
}

// weight tells rows that do not end their list, but explain what is reported.
type weight int

const (
	decisiveState weight = iota + 1
	decisiveHealth
)

// weigh returns the weight of a row.
func weigh(name string, seen any) weight {
	switch seen := seen.(type) {
	case Changing:
		found := seen.Release.State.State
		stays := found != "" && found != state.InSync && !seen.Applied

		if name == compareRow && stays && seen.Release.Decision.Action != state.Hold {
			return decisiveState
		}
	case Installed:
		if name == healthRow && seen.Health.Checked && !seen.healthy() {
			return decisiveHealth
		}
	}

	return 0
}

// endOf says who or what ends what a row describes.
func endOf(name string, seen any) string {
	if c, is := seen.(Changing); is && name == compareRow && c.Release.Decision.Action == state.Stop {
		return "A user, who changes the resource or asks for another attempt by its annotation."
	}

	return explanations[name].ends
}

// continues reports whether a decision belongs to the same list as the one before.
func continues(before, decision Decision) bool {
	ended := before.Step.Action == End || before.Step.Action == Nothing || before.Step.Action == Block
	return !ended && listName(before.Seen) == listName(decision.Seen)
}

func listName(seen any) string {
	switch seen.(type) {
	case Beginning:
		return "begin"
	case Installed:
		return "care"
	case Upgrading:
		return "upgrade"
	case Changing:
		return "change"
	default:
		return "removal"
	}
}

// explain returns the list that decisions come from.
func explain(decisions []Decision) List {
	last := decisions[len(decisions)-1]
	list := List{Name: listName(last.Seen)}

	switch seen := last.Seen.(type) {
	case Beginning:
		list.Rows = explainRows(beginRules, beginFacts, seen, decisions)
	case Installed:
		list.Rows = explainRows(careRules, careFacts, seen, decisions)
	case Upgrading:
		list.Rows = explainRows(upgradeRules, upgradeFacts, seen, decisions)
	case Changing:
		list.Rows = explainRows(changeRules, changeFacts, seen, decisions)
	case Removing:
		list.Rows = explainRows(removeRules, removeFacts, seen, decisions)
	}

	return list
}

// fact is something that rows depend on.
type fact[Seen any] struct {
	name  string
	from  origin
	value func(Seen) string
}

func explainRows[Seen any](rules []rule[Seen], facts map[string]fact[Seen], seen Seen, decisions []Decision) []Row {
	last := decisions[len(decisions)-1].Step
	reached := true
	rows := make([]Row, 0, len(rules))

	for _, rule := range rules {
		about := explanations[rule.name]
		row := Row{Name: rule.name, Verdict: NotReached}

		if reached {
			row.Verdict, row.Action = NotNeeded, taken(decisions, rule.name)
			row.Inputs, row.weight = inputs(about, facts, seen), weigh(rule.name, seen)
			row.ends = endOf(rule.name, seen)
		}

		if row.Action != Nothing {
			row.Verdict = Passed
		}

		if last.Row == rule.name {
			row.Verdict, reached = Decided, false
			row.Result, row.Message, row.Until = resultOf(last)
		}

		rows = append(rows, row)
	}

	return rows
}

// taken returns the action that a row has taken; Nothing for none.
func taken(decisions []Decision, row string) Action {
	for _, d := range slices.Backward(decisions) {
		if d.Step.Row == row && d.Step.Action != End && d.Step.Action != Block {
			return d.Step.Action
		}
	}

	return Nothing
}

func inputs[Seen any](about explanation, facts map[string]fact[Seen], seen Seen) []Input {
	found := make([]Input, 0, len(about.facts)+1)

	for _, key := range about.facts {
		f := facts[key]
		found = append(found, Input{Name: f.name, Value: f.value(seen), From: string(f.from), Trust: trust(seen, f.from)})
	}

	if len(about.asks) > 0 {
		from := make([]string, 0, len(about.asks))
		for _, o := range about.asks {
			from = append(from, string(o))
		}

		found = append(found, Input{
			Name: "answer", Value: answered(seen, about.action), From: strings.Join(from, ", "),
			Trust: trust(seen, about.asks...),
		})
	}

	return found
}

// trust returns how far what is read from origins is trusted: as far as the least trusted of them.
func trust(seen any, from ...origin) Trust {
	claimed := func(o origin) bool {
		return slices.Contains(claims, o) || o == fromRecords && !confirmed(seen)
	}

	if slices.ContainsFunc(from, claimed) {
		return Claimed
	}

	return Evidence
}

// confirmed reports whether the newest revision is confirmed.
func confirmed(seen any) bool {
	var history state.History

	switch seen := seen.(type) {
	case Installed:
		history = seen.History
	case Upgrading:
		history = seen.History
	case Changing:
		history = seen.History
	}

	newest, _ := history.Newest()

	return newest.Confirmed()
}

// answered describes the answer to a question.
func answered(seen any, action Action) string {
	from, has := seen.(asked)
	if !has {
		return "done"
	}

	answer, exists := from.answers()[action]

	switch {
	case !exists:
		return "not asked"
	case answer.Ends():
		return answer.Message
	}

	return "no problem"
}

// resultOf describes how a step has ended its list.
func resultOf(step Step) (result, message string, until time.Time) {
	ended := step.Result
	if pending := step.Selection.Pending; pending != nil {
		message = pending.Message
	}

	if !ended.Ends() {
		return "", message, step.Until
	}

	return outcomes[ended.Outcome], ended.Message, ended.At
}

var outcomes = map[report.Outcome]string{
	report.Ready:    "Ready",
	report.Waiting:  "Waiting",
	report.Stalled:  "Stalled",
	report.Retrying: "Retrying",
	report.Idle:     "Idle",
	report.Repeated: "Repeated",
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}

	return "no"
}

// describeRevision describes a revision for people.
func describeRevision(r state.Revision) string {
	if r.Number == 0 {
		return "none"
	}

	words := []string{fmt.Sprintf("%d is %s", r.Number, r.Status)}

	for _, note := range []struct {
		is   bool
		text string
	}{
		{r.Healthy, "was healthy"},
		{r.Staged, "is not complete yet"},
		{r.Unpruned, "has left objects to delete"},
		{r.Failure != "", "has failed: " + string(r.Failure)},
		{r.RollbackTo != 0, fmt.Sprintf("returned to revision %d", r.RollbackTo)},
		{r.Unreadable, "cannot be read"},
		{!r.Confirmed(), "is not confirmed"},
	} {
		if note.is {
			words = append(words, note.text)
		}
	}

	return strings.Join(words, ", ")
}

func describeHealth(h report.Health) string {
	switch {
	case !h.Checked:
		return "not read"
	case h.Healthy:
		return "all are healthy"
	case h.Message == "":
		return "not all are healthy"
	}

	return h.Message
}

func describeContent(c Content) string {
	switch {
	case !c.Known:
		return "none"
	case c.Contract == "":
		return c.Version
	}

	return c.Version + ", contract " + c.Contract
}

func describeProblem(r report.Result) string {
	if !r.Ends() {
		return "none"
	}

	return r.Message
}
