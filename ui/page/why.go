package page

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
)

// Explanation is what the operator would decide about a provider now.
type Explanation struct {
	// Ready is the condition that it would report; nil for none.
	Ready *metav1.Condition
	Lists []decide.List
	// Unknown are what could not be found out, with the reasons.
	Unknown []string
}

// Why is the section with an explanation.
type Why struct {
	// Age is when it was computed; empty if it has not been yet.
	Age string
	// Problem is why there is no explanation; empty if it is known or being computed.
	Problem string
	Command string
	// Ready is what the operator would report, if it has reported something else.
	Ready string
	// Decision names the decisive row, or says that there is none. Inputs are what that row depends on.
	Decision string
	Inputs   []Input
	// Until is when the operator decides again, and Ends who or what ends a wait; empty if they are not known.
	Until, Ends string
	Unknown     []string
	Lists       []RowList
}

// RowList is a list of rules.
type RowList struct {
	Name string
	Rows []Row
	// NotReached is how many rows follow that were not reached; empty for none.
	NotReached string
}

// Row is a rule. Its level is "good" if the list continued after its action, "busy" if it explains what is reported, or
// "past".
type Row struct {
	Level, Verdict, Name, Result string
	Inputs                       []Input
}

// Input is something that a row depends on.
type Input struct{ Name, Value, From, Trust string }

// Explain sets what the operator would decide, or why that is not known. The time is zero while that is computed.
func (p *Provider) Explain(found Explanation, computed time.Time, err error) {
	w := &p.Why
	w.Age = p.age(computed)

	switch {
	case err != nil:
		w.Problem = "What the operator decides cannot be computed: " + err.Error()
		return
	case computed.IsZero():
		return
	}

	if r := found.Ready; r != nil && r.Message != p.Card.Message {
		w.Ready = fmt.Sprintf("Ready would be %s (%s): %s", r.Status, r.Reason, r.Message)
	}

	w.Unknown = slices.Clone(found.Unknown)

	row, text := decide.Decisive(found.Lists)
	w.Decision = text

	if row != nil {
		w.Inputs, w.Ends = inputsOf(row), row.Ends

		if !row.Until.IsZero() {
			w.Until = row.Until.UTC().Format(time.RFC3339)
		}
	}

	for _, list := range found.Lists {
		w.Lists = append(w.Lists, newRowList(list))
	}
}

func newRowList(list decide.List) RowList {
	shown := RowList{Name: list.Name}
	rows, left := list.Reached()

	for i := range rows {
		shown.Rows = append(shown.Rows, newRow(&rows[i]))
	}

	if left > 0 {
		shown.NotReached = plural(left, "row") + " not reached"
	}

	return shown
}

func newRow(row *decide.Row) Row {
	shown := Row{Level: levelPast, Verdict: "not needed", Name: row.Name, Inputs: inputsOf(row)}

	switch row.Verdict {
	case decide.Passed:
		shown.Level, shown.Verdict, shown.Result = levelGood, "passed", string(row.Action)
	case decide.Decided:
		shown.Verdict, shown.Result = "decided", row.Result
	case decide.NotNeeded, decide.NotReached:
	}

	if row.Decisive {
		shown.Level = levelBusy
	}

	for i := range shown.Inputs {
		shown.Inputs[i].Value = shorten(shown.Inputs[i].Value) // those of the decisive row are complete above
	}

	return shown
}

func inputsOf(row *decide.Row) []Input {
	found := make([]Input, 0, len(row.Inputs))
	for _, in := range row.Inputs {
		found = append(found, Input{Name: in.Name, Value: in.Value, From: in.From, Trust: string(in.Trust)})
	}

	return found
}
