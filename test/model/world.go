package model

import (
	"iter"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// startTime is when a walk starts.
var startTime = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// startup is how long a manager takes until it is available, and lease how long the other process
// waits for a leader that does not answer.
const (
	startup = 2 * time.Second
	lease   = 15 * time.Second
)

// resource is the provider's resource.
type resource struct {
	wanted     Wanted
	generation int
	request    int // the annotation
	deleting   bool

	status  v1alpha2.ProviderStatus
	handled int // request
}

// condition returns the status of a condition.
func (r *resource) condition(name string) metav1.ConditionStatus {
	for _, condition := range r.status.Conditions {
		if condition.Type == name {
			return condition.Status
		}
	}

	return metav1.ConditionUnknown
}

// World is a model of one provider and its environment.
type World struct {
	now      time.Time
	resource resource
	secret   int
	registry int
	records  []Record // newest first
	objects  map[string]Object
	// changed is when the manager's Deployment was last changed.
	changed time.Time
	stored  []string

	processes [2]*process
	leader    *process
	// news is set if anything but the operator has changed the world since the last pass: another one would do the same.
	news bool

	defect    Defect
	oracle    *Oracle
	violation *Violation
}

// NewWorld returns a world in which nothing is installed yet, and whose operator has a defect.
func NewWorld(defect Defect) *World {
	w := &World{now: startTime, defect: defect, oracle: &Oracle{}}
	w.processes = [2]*process{{name: "first"}, {name: "second"}}
	w.leader = w.processes[0]
	w.create()

	return w
}

// create creates the resource, in a cluster without anything of the provider.
func (w *World) create() {
	w.resource = resource{wanted: Wanted{Version: Catalog[0].Name}, generation: 1}
	w.objects = map[string]Object{}
	w.records = nil
	w.stored = nil
	w.oracle.Created(w.resource.wanted)
}

// Snapshot returns what can be seen of the provider.
func (w *World) Snapshot() Snapshot {
	return Snapshot{
		Records: w.records, Objects: w.objects, Stored: w.stored, Now: w.now,
		Ready: w.resource.condition(v1alpha2.ReadyCondition), Stalled: w.resource.condition(v1alpha2.StalledCondition),
		Contract: ptr.Deref(w.resource.status.Contract, ""),
	}
}

// history returns the history of the release as the operator reads it.
func (w *World) history() state.History {
	history := state.History{Revisions: make([]state.Revision, 0, len(w.records))}
	for _, r := range w.records {
		revision := r.Revision
		revision.Known = state.AnyRecord() // users of the model forge no records
		revision.Paused = revision.Paused && w.defect != ReturnsToPaused
		history.Revisions = append(history.Revisions, revision)
	}

	return history
}

// healthy reports whether objects exist, and the manager of a version is available.
func (w *World) healthy(objects map[string]Object) bool {
	for name := range objects {
		if _, exists := w.objects[name]; !exists {
			return false
		}
	}

	manager := w.objects[Manager]
	available := Find(manager.Version).Flaw != NeverHealthy && !w.now.Before(w.changed.Add(startup))

	return manager.Replicas == 0 || available
}

// put creates or changes an object.
func (w *World) put(name string, o Object) {
	w.objects[name] = o
	if name == Manager {
		w.changed = w.now
	}
}

// applyCRD applies the CRD of a version. It is never downgraded.
func (w *World) applyCRD(version string) {
	stored := Find(version).Stored
	if !slices.Contains(w.stored, stored[0]) {
		w.stored = stored
	}
}

// newestNumber returns the number of the newest revision; 0 if there is none.
func (w *World) newestNumber() int {
	if len(w.records) == 0 {
		return 0
	}

	return w.records[0].Number
}

// add adds a revision, if no other program has changed the history.
func (w *World) add(r Record) bool {
	if r.Number != w.newestNumber()+1 {
		return false
	}

	r.Created, r.Changed = w.now, w.now
	w.records = slices.Insert(slices.Clone(w.records), 0, r)

	const limit = 12

	w.records = w.records[:min(len(w.records), limit)]

	return true
}

// update changes a revision.
func (w *World) update(number int, change func(*Record)) {
	w.records = slices.Clone(w.records)
	for i := range w.records {
		if w.records[i].Number == number {
			change(&w.records[i])
			w.records[i].Changed = w.now
		}
	}
}

// Take takes a step. It returns an error if the world is not as it must be after that.
func (w *World) Take(step Step) error {
	w.act(step)
	w.report(w.oracle.Check(w.Snapshot()))

	if w.violation == nil {
		return nil
	}

	return w.violation
}

// report keeps the first violation.
func (w *World) report(v *Violation) {
	if w.violation == nil && v != nil {
		v.Snapshot = w.Snapshot()
		w.violation = v
	}
}

func (w *World) act(step Step) {
	w.news = w.news || step.Kind != Operate && step.Kind != Fail

	switch step.Kind {
	case Operate:
		w.operate(passes)
	case Fail:
		w.operate([]fate{failsBefore, failsAfter}[step.Arg])
	case Pass:
		w.now = w.now.Add(Passes[step.Arg])
	case Settle:
		w.settle()
	case Kill:
		w.leader.restart()
		w.elect()
	case Freeze:
		w.leader.frozen = true
	case Thaw:
		w.thaw()
	case Reconfigure:
		w.thaw()
		w.registry = step.Arg

		for _, p := range w.processes {
			p.restart()
		}
	default:
		if !w.resource.deleting {
			w.intervene(step)
		}
	}
}

func (w *World) thaw() {
	for _, p := range w.processes {
		p.frozen = false
	}
}

// elect makes the other process the leader.
func (w *World) elect() {
	other := w.processes[0]
	if w.leader == other {
		other = w.processes[1]
	}

	if !other.frozen {
		w.leader.lost = true
		w.leader = other
		w.now, w.news = w.now.Add(lease), true
	}
}

// operate lets the processes make their next request.
func (w *World) operate(f fate) {
	if w.leader.frozen {
		w.elect()
	}

	for _, p := range w.processes {
		if !p.frozen {
			p.proceed(w, f)
		}
	}
}

// settle ends all disturbances and operates until nothing happens any more. Then it checks the world.
func (w *World) settle() {
	w.thaw()

	const limit = 2000

	looked := false // once more at what is stalled, as the operator does in ever longer intervals

	for range limit {
		w.operate(passes)
		w.report(w.oracle.Check(w.Snapshot()))

		p := w.leader

		switch {
		case w.violation != nil:
			return
		case !p.idle:
			continue
		case !p.wake.IsZero():
			w.now, w.news = p.wake, true
		case p.stalled && !looked:
			w.now, w.news = w.now.Add(state.MaxBackoff), true
			looked = true
		default:
			w.report(w.oracle.CheckIdle(w.Snapshot()))
			w.oracle.Settled()

			return
		}
	}

	w.report(violates(Rest, "it still makes requests"))
}

// newestRecord returns the newest revision, if there is any.
func (w *World) newestRecord() (Record, bool) {
	if len(w.records) == 0 {
		return Record{}, false
	}

	return w.records[0], true
}

// find returns the revision with a number, if there is one.
func (w *World) find(number int) (Record, bool) {
	s := w.Snapshot()
	return s.find(number)
}

// names returns the names of the objects, sorted.
func (w *World) names() []string { return slices.Sorted(maps.Keys(w.objects)) }

// byName iterates over objects in the order of their names, so that a walk can be repeated.
func byName(objects map[string]Object) iter.Seq2[string, Object] {
	return func(yield func(string, Object) bool) {
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if !yield(name, objects[name]) {
				return
			}
		}
	}
}
