package model

import (
	"github.com/capstan-project/capstan/controllers/release/state"
)

// intervene is what users do.
func (w *World) intervene(step Step) {
	switch step.Kind {
	case SetVersion:
		wanted := w.resource.wanted
		wanted.Version = Popular[step.Arg]
		w.ask(wanted)
	case SetPaused:
		wanted := w.resource.wanted
		wanted.Paused = step.Arg == 1
		w.ask(wanted)
	case Request:
		w.resource.request++
		w.oracle.Requested()
	case EditSecret:
		w.secret = step.Arg
	case HelmRollback:
		s := w.Snapshot()
		if target, exists := s.HelmTarget(step.Arg); exists {
			w.helm(target.Content, target.Origin)
		}
	case HelmUpgrade:
		if len(w.records) > 0 {
			w.helm(Content{Wanted: Wanted{Version: Accepted[step.Arg]}}, w.records[0].Origin)
		}
	case HelmUninstall:
		w.records, w.objects = nil, map[string]Object{}
	case EditObject:
		if names := w.names(); len(names) > 0 {
			name := names[step.Arg%len(names)]
			w.put(name, edited(name, w.objects[name]))
		}
	case DeleteObject:
		if names := w.names(); len(names) > 0 {
			delete(w.objects, names[step.Arg%len(names)])
		}
	case Remove:
		w.resource.deleting = true
	}
}

// ask changes the resource.
func (w *World) ask(wanted Wanted) {
	if wanted == w.resource.wanted {
		return
	}

	w.resource.wanted = wanted
	w.resource.generation++
	w.oracle.Asked(wanted)
}

// helm is a command of a helm program that creates a revision. Helm refuses that while another program
// works on the release. The labels of Capstan's are copied from another revision.
func (w *World) helm(content Content, origin int) {
	if status := w.records[0].Status; status.Pending() || status == state.StatusUninstalling {
		return
	}

	record := Record{Content: content}
	record.Number = w.newestNumber() + 1
	record.Origin = origin
	record.Status = state.StatusDeployed

	for _, r := range w.records {
		if r.deployed() {
			w.update(r.Number, func(r *Record) { r.Status = state.StatusSuperseded })
		}
	}

	wanted := content.Objects()

	for _, name := range w.names() {
		if _, keep := wanted[name]; !keep {
			delete(w.objects, name)
		}
	}

	for name, o := range byName(wanted) {
		w.put(name, o)
	}

	w.add(record)
}

// edited returns an object as a user changes it.
func edited(name string, o Object) Object {
	if name == Manager {
		o.Replicas += 2
	} else {
		o.Version = "edited"
	}

	return o
}
