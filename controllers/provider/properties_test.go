package provider

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// A property is what is true of every report. It returns what of a report is not; empty if all is.
type property struct {
	name  string
	holds func(situation, Report) string
}

var properties = []property{
	{"No message says something twice", saysNothingTwice},
	{"Ready is True only if what is wanted was seen to be healthy", readyIsSeen},
	{"What runs instead of what the resource asks for is named", differenceIsNamed},
	{"Paused is True only if no Deployment was seen to have replicas", pausedIsSeen},
	{"Only what was seen to be healthy is called healthy", healthyIsSeen},
	{"Installed is only a revision that exists", installedExists},
	{"A message has no holes", hasNoHoles},
	{"A revision that a message names exists", revisionsExist},
	{"A wait says what ends it", waitsEnd},
	{"A remedy changes what it is for", remediesHelp},
	{"Ready, Reconciling and Stalled agree", conditionsAgree},
}

// check returns what of a report is not true.
func check(s situation, made Report) []string {
	var lies []string

	for _, p := range properties {
		if lie := p.holds(s, made); lie != "" {
			lies = append(lies, p.name+": "+lie)
		}
	}

	return lies
}

// sawHealthy reports whether the newest revision is deployed completely, and all of its objects were seen healthy.
func sawHealthy(installed *installed) bool {
	deployed := installed.observed && installed.Record != nil && installed.Newest.Status == v1alpha2.RevisionDeployed
	return deployed && !installed.Newest.Staged() && installed.health != nil && installed.health.Healthy()
}

func readyIsSeen(s situation, made Report) string {
	stopped := s.change.Ends() || !s.suspended && s.care.Ends()

	switch {
	case !isTrue(made, v1alpha2.ReadyCondition):
		return ""
	case !sawHealthy(&s.r.installed):
		return "it was not seen to be healthy: " + made.condition(v1alpha2.ReadyCondition).Message
	case s.r.installed.unconfirmed != nil:
		return s.r.installed.unconfirmed.Error()
	case stopped && !s.suspended:
		return "care or change has a problem"
	case made.Status.ObservedGeneration != s.r.provider.GetGeneration():
		return "of another generation"
	}

	return ""
}

func differenceIsNamed(s situation, made Report) string {
	if !isTrue(made, v1alpha2.ReadyCondition) {
		return ""
	}

	ready := made.condition(v1alpha2.ReadyCondition)

	switch {
	case !strings.HasPrefix(ready.Message, s.r.installed.Record.AppVersion+" "):
		return "Ready does not name the version that runs: " + ready.Message
	case s.suspended:
		if ready.Reason != v1alpha2.SuspendedReason {
			return "it is suspended"
		}
	case s.r.change.release.Decision.Action == state.Hold:
		if ready.Reason != v1alpha2.ExternalChangeReason {
			return "it is another program's"
		}
	case s.r.change.problem.Ends():
		if !isTrue(made, v1alpha2.InputsUnavailableCondition) {
			return "the inputs that are missing"
		}
	case s.r.change.release.Pinned:
		if !isTrue(made, v1alpha2.ChangesPendingCondition) {
			return "the changes that are pending"
		}
	case s.r.installed.Newest.ContentDigest != s.r.change.release.Digest:
		return "it is something else"
	}

	if !strings.Contains(ready.Message, s.r.installed.replicas.keptMessage()) {
		return "the images that differ"
	}

	if !strings.Contains(ready.Message, s.r.done.undeleted) {
		return "the objects that finalizers hold"
	}

	deviates := s.r.installed.deviations != nil && len(*s.r.installed.deviations) > 0 && s.r.installed.isOwn() &&
		driftPolicy(s.r.provider.GetSpec()) != v1alpha2.DriftOff
	if deviates && !isTrue(made, v1alpha2.DriftedCondition) {
		return "the objects that differ"
	}

	return ""
}

func pausedIsSeen(s situation, made Report) string {
	installed := &s.r.installed

	switch {
	case !isTrue(made, v1alpha2.PausedCondition):
		return ""
	case installed.replicas.running:
		return "a Deployment has replicas"
	case installed.observed && len(installed.History.Revisions) == 0:
		return "nothing is installed"
	case installed.Record != nil && !installed.paused():
		return "the revision is not paused"
	case !isTrue(Report{Status: *s.r.provider.GetStatus()}, v1alpha2.PausedCondition) && installed.health == nil:
		return "the Deployments were not looked at"
	}

	return ""
}

var saysRuns = regexp.MustCompile(`\bv[0-9.]+ runs\b`)

func healthyIsSeen(s situation, made Report) string {
	if sawHealthy(&s.r.installed) && (s.suspended || !s.care.Ends()) {
		return ""
	}

	for _, text := range texts(made) {
		if strings.Contains(text, "is healthy") || saysRuns.MatchString(text) {
			return text
		}
	}

	return ""
}

func installedExists(s situation, made Report) string {
	installed := made.condition(v1alpha2.ProviderInstalledCondition)

	switch exists := s.r.installed.observed && len(s.r.installed.History.Revisions) > 0; {
	case installed.Status != metav1.ConditionTrue || !s.r.installed.observed:
		return ""
	case s.r.done.uninstalled || !exists:
		return installed.Message
	}

	return ""
}

// holes are what messages have in the place of something that was not known.
var holes = []string{
	"  ", "%!", "; ;", ": ;", ":;", ", ,", " ;", " ,", " :", "()", `""`, "<nil>", "map[", "&{", "0xc0", "is ;", "holds ;",
	"context canceled", " 0s ",
}

func hasNoHoles(_ situation, made Report) string {
	for _, text := range texts(made) {
		for _, hole := range holes {
			if strings.Contains(text, hole) {
				return strconv.Quote(text)
			}
		}

		if strings.Trim(text, " ;:,") != text {
			return strconv.Quote(text)
		}
	}

	for _, c := range made.Status.Conditions {
		if c.Message == "" || c.Reason == "" {
			return c.Type + " has no message or reason"
		}
	}

	return ""
}

var namesRevision = regexp.MustCompile(`(no |rollback to )?\brevision (\d+)`)

// revisionsExist is about what this report has written.
func revisionsExist(s situation, made Report) string {
	if !s.r.installed.observed {
		return ""
	}

	for _, c := range made.Status.Conditions {
		if !strings.Contains(c.Message, "revision ") {
			continue
		}

		for _, match := range namesRevision.FindAllStringSubmatch(c.Message, -1) {
			number, _ := strconv.Atoi(match[2])
			if _, exists := s.r.installed.History.Find(number); !exists && number != 0 && match[1] == "" {
				return c.Type + ": " + c.Message
			}
		}
	}

	return ""
}

// ends matches what ends a wait: an object that becomes healthy, another program, a time, or another attempt.
var ends = regexp.MustCompile(`[A-Z]\w+ [a-z/-]+: |\(pod |waiting (until|for) |is running|again|are next|once | yet|` +
	`change |spec\.|annotation|capstan reconcile|does not answer`)

func waitsEnd(_ situation, made Report) string {
	waits := made.condition(v1alpha2.ReconcilingCondition)

	switch {
	case waits.Status != metav1.ConditionTrue || made.Retry != "":
		return ""
	case !ends.MatchString(made.condition(v1alpha2.ReadyCondition).Message):
		return made.condition(v1alpha2.ReadyCondition).Message
	}

	return ""
}

// remediesHelp follows the remedies in a message, and looks at what the operator decides then.
func remediesHelp(s situation, made Report) string {
	message := made.condition(v1alpha2.ReadyCondition).Message
	change := s.r.change.release
	held := change.Decision.Action == state.Hold || change.Decision.Action == state.Stop

	if !held || s.suspended || s.care.Ends() || s.change.Ends() && s.change.Reason != v1alpha2.ExternalChangeReason ||
		s.r.installed.unconfirmed != nil {
		return ""
	}

	after := func(digest string, follow func(*state.Policy)) state.Action {
		policy := s.r.policy
		follow(&policy)

		observed := state.Determine(s.r.installed.History, digest, state.Rules{LockTimeout: 10 * time.Minute, Now: now})

		return state.Next(s.r.installed.History, digest, observed, policy).Action
	}
	request := func(p *state.Policy) { p.Requested = true }
	remedies := 0

	for remedy, next := range map[string]func() state.Action{
		"run `capstan reconcile infrastructure-aws`": func() state.Action {
			return after(change.Digest, request)
		},
		"run `capstan rollback infrastructure-aws --keep`": func() state.Action {
			if !strings.Contains(message, "to stay with "+s.r.installed.Record.AppVersion+", ") {
				return state.Hold
			}

			return after(s.r.installed.Newest.ContentDigest, request)
		},
	} {
		if !strings.Contains(message, remedy) {
			continue
		}

		remedies++

		if action := next(); action == state.Hold || action == state.Stop {
			return fmt.Sprintf("%s: still %s: %s", remedy, action, message)
		}
	}

	if remedies == 0 {
		return "there is none: " + message
	}

	return ""
}

func saysNothingTwice(_ situation, made Report) string {
	for _, text := range texts(made) {
		said := ""

		for clause := range strings.SplitSeq(text, "; ") {
			if _, cause, _ := strings.Cut(clause, ": "); strings.Contains(said, clause) ||
				cause != "" && strings.Contains(said, cause) {
				return text
			}

			said += "; " + clause
		}
	}

	return ""
}

func conditionsAgree(_ situation, made Report) string {
	ready, waits := isTrue(made, v1alpha2.ReadyCondition), isTrue(made, v1alpha2.ReconcilingCondition)
	stalled := isTrue(made, v1alpha2.StalledCondition)

	if ready && (waits || stalled) || waits && stalled {
		return fmt.Sprintf("Ready %t, Reconciling %t, Stalled %t", ready, waits, stalled)
	}

	message := made.condition(v1alpha2.ReadyCondition).Message

	for _, c := range made.Status.Conditions {
		other := c.Type == v1alpha2.ReconcilingCondition || c.Type == v1alpha2.StalledCondition
		if other && !strings.HasPrefix(message, c.Message) {
			return c.Type + ": " + c.Message + ", and Ready: " + message
		}
	}

	return ""
}

// situations is how many random situations are checked.
const situations = 30_000

func TestReportsAreTrue(t *testing.T) {
	found := map[string][]string{}
	g := newGenerator()
	outcomes := map[string]int{}

	for range situations {
		s := g.situation()
		made := s.r.report(s.ended(), now)
		ready := made.condition(v1alpha2.ReadyCondition)
		outcomes[fmt.Sprintf("%s %s", ready.Status, ready.Reason)]++

		for _, lie := range check(s, made) {
			name, _, _ := strings.Cut(lie, ":")
			found[name] = append(found[name], lie)
		}
	}

	for name, lies := range found {
		t.Errorf("%s: %d of %d, such as:\n%s", name, len(lies), situations, strings.Join(lies[:min(len(lies), 5)], "\n"))
	}

	for _, want := range []string{
		"True Healthy", "True ScaledDown", "True ExternalChange", "True Suspended", "False Suspended", "False ExternalChange",
		"False Unhealthy", "False Progressing", "False InstallFailed", "False TimedOutWaitingForDeployment",
	} {
		NewWithT(t).Expect(outcomes[want]).To(BeNumerically(">", situations/1000), "%s in %v", want, outcomes)
	}
}

// TestPropertiesFindLies checks that the properties find reports that say what was not seen.
func TestPropertiesFindLies(t *testing.T) {
	honest := func(s situation) Report { return s.r.report(s.ended(), now) }
	ofChanged := func(change func(*situation)) func(situation) Report {
		return func(s situation) Report {
			s.r = copyOf(s.r)
			change(&s)

			return honest(s)
		}
	}
	ofMessage := func(change func(string) string) func(situation) Report {
		return func(s situation) Report {
			ended := s.ended()
			ended.message = because(change(ended.text()))

			return s.r.report(ended, now)
		}
	}

	for name, lie := range map[string]func(situation) Report{
		"paused, because the revision is":       ofChanged(func(s *situation) { s.r.installed.replicas.running = false }),
		"ready, because it is deployed":         ofChanged(func(s *situation) { s.r.installed.health = &health.Report{} }),
		"complete, because it is deployed":      ofChanged(func(s *situation) { s.r.installed.Newest.Wave = nil }),
		"healthy, although CRDs are not served": ofChanged(func(s *situation) { s.care = Result{} }),
		"in sync, although it is another program's": ofChanged(func(s *situation) {
			s.r.change.release.Decision.Action, s.r.change.release.State.State = state.None, state.InSync
		}),
		"no version": ofChanged(func(s *situation) {
			if s.r.installed.Record != nil {
				s.r.installed.Record.AppVersion = ""
			}
		}),
		"installed, because it once was": func(s situation) Report {
			made := honest(s)
			written := &conditions{list: made.Status.Conditions, now: now}
			written.markTrue(v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason,
				"Release infrastructure-aws has v1.0.0 as revision 1")
			made.Status.Conditions = written.list

			return made
		},
		"a revision that never was": ofMessage(func(message string) string { return message + "; see revision 99" }),
		"a remedy for something else": ofMessage(func(message string) string {
			return strings.NewReplacer("capstan reconcile", "capstan status", "--keep", "--undo").Replace(message)
		}),
		"a wait for nothing": ofMessage(func(string) string { return "in progress" }),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGenerator()
			found := 0

			for range situations / 20 {
				s := g.situation()
				found += len(check(s, lie(s)))
			}

			NewWithT(t).Expect(found).NotTo(BeZero())
		})
	}
}
