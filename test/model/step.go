package model

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind is the kind of a step.
type Kind string

// What users do.
const (
	// SetVersion changes spec.version to the version Arg of Popular.
	SetVersion Kind = "set version"
	// SetPaused sets spec.paused to whether Arg is 1.
	SetPaused Kind = "set paused"
	// EditSecret changes the Secret with the variables to the content Arg.
	EditSecret Kind = "edit Secret"
	// Request changes the annotation that requests a reconcile.
	Request Kind = "request"
	// HelmRollback runs `helm rollback` to a revision: 0 is the one before the newest one. Revisions that
	// the API server refuses are left out: Helm itself leaves objects behind after a failed command.
	HelmRollback Kind = "helm rollback"
	// HelmUpgrade runs `helm upgrade` to the version Arg of Accepted.
	HelmUpgrade Kind = "helm upgrade"
	// HelmUninstall runs `helm uninstall`.
	HelmUninstall Kind = "helm uninstall"
	// EditObject changes the object Arg of the release, modulo their number.
	EditObject Kind = "edit object"
	// DeleteObject deletes the object Arg of the release, modulo their number.
	DeleteObject Kind = "delete object"
	// Remove deletes the resource, and creates another one once it is gone.
	Remove Kind = "remove"
)

// What happens to the operator.
const (
	// Operate lets the operator take effect: its next request succeeds.
	Operate Kind = "operate"
	// Fail lets the operator's next request fail: before it takes effect if Arg is 0, otherwise after.
	Fail Kind = "fail"
	// Pass lets the time Arg of Passes pass.
	Pass Kind = "pass"
	// Kill kills the leader, and starts it again.
	Kill Kind = "kill"
	// Freeze stops the leader. The other process takes over.
	Freeze Kind = "freeze"
	// Thaw continues a process that was frozen.
	Thaw Kind = "thaw"
	// Reconfigure kills all processes, and starts them again with flags that name the image registry Arg.
	Reconfigure Kind = "reconfigure"
	// Settle ends all disturbances, and waits until nothing happens any more.
	Settle Kind = "settle"
)

// Popular are the versions that users choose, those without a flaw more often.
var Popular = []string{
	"v1.0.0", "v1.1.0", "v1.0.0", "v1.1.0", "v1.0.0", "v1.1.0", "v1.2.0", "v1.3.0", "v2.0.0", "v2.1.0",
	"v2.2.0", "v3.0.0",
}

// Accepted are the versions that the API server accepts.
var Accepted = []string{"v1.0.0", "v1.1.0", "v1.2.0", "v2.0.0", "v2.1.0"}

// Passes are the times that pass.
var Passes = []time.Duration{time.Second, 3 * time.Second, 20 * time.Second, 15 * time.Minute}

// Step is one step of a walk.
type Step struct {
	Kind Kind
	Arg  int
}

// String returns the step with the meaning of its argument.
func (s Step) String() string {
	switch s.Kind {
	case SetVersion:
		return fmt.Sprintf("%s %s", s.Kind, Popular[s.Arg])
	case HelmUpgrade:
		return fmt.Sprintf("%s %s", s.Kind, Accepted[s.Arg])
	case Pass:
		return fmt.Sprintf("%s %s", s.Kind, Passes[s.Arg])
	case SetPaused, EditSecret, HelmRollback, EditObject, DeleteObject, Fail, Reconfigure:
		return fmt.Sprintf("%s %d", s.Kind, s.Arg)
	default:
		return string(s.Kind)
	}
}

// choices has how often each kind of step is chosen, and how many arguments it has. Faults meet one in
// twenty of the operator's requests.
var choices = []struct {
	kind         Kind
	weight, args int
}{
	{Operate, 570, 1},
	{Fail, 30, 2},
	{Pass, 120, len(Passes)},
	{Settle, 40, 1},
	{SetVersion, 50, len(Popular)},
	{SetPaused, 20, 2},
	{EditSecret, 20, 3},
	{Request, 10, 1},
	{HelmRollback, 20, 3},
	{HelmUpgrade, 20, len(Accepted)},
	{HelmUninstall, 4, 1},
	{EditObject, 20, 5},
	{DeleteObject, 20, 5},
	{Remove, 4, 1},
	{Kill, 20, 1},
	{Freeze, 10, 1},
	{Thaw, 10, 1},
	{Reconfigure, 8, 2},
}

// Choose returns a random step, where pick returns a random number from 0 to n-1.
func Choose(pick func(n int) int) Step {
	total := 0
	for _, c := range choices {
		total += c.weight
	}

	at := pick(total)

	for _, c := range choices {
		if at < c.weight {
			return Step{Kind: c.kind, Arg: pick(c.args)}
		}

		at -= c.weight
	}

	panic("unreachable")
}

// Walk returns the random walk of a seed. It ends with everything settled.
func Walk(seed uint64, steps int) []Step {
	random := rand.New(rand.NewPCG(seed, 0))
	walk := make([]Step, 0, steps)

	for range steps - 1 {
		walk = append(walk, Choose(random.IntN))
	}

	return append(walk, Step{Kind: Settle})
}
