package release

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// maxHooks is how many hooks an event has at most.
const maxHooks = 50

// earlierEvents are the events that come before others in the same action.
var earlierEvents = map[helm.HookEvent]helm.HookEvent{
	helm.HookPostInstall:  helm.HookPreInstall,
	helm.HookPostUpgrade:  helm.HookPreUpgrade,
	helm.HookPostRollback: helm.HookPreRollback,
	helm.HookPostDelete:   helm.HookPreDelete,
}

// runHooks runs the hooks of a revision for an event, one after the other, by Helm's rules. It never waits: the error
// is a *cluster.HookError until the last one has ended, and the next call continues from what was announced. What the
// record says of them is for users of Helm.
func (s *session) runHooks(rel *helm.Release, event helm.HookEvent) error {
	hooks := hooksOf(rel, event)

	if len(hooks) == 0 || earlierEvents[helm.HookEvent(s.hooks.Event)] == event {
		return nil
	}

	if len(hooks) > maxHooks {
		return fmt.Errorf("the chart has more than %d %s hooks", maxHooks, event)
	}

	if helm.HookEvent(s.hooks.Event) == event {
		recallRuns(hooks, s.hooks)
	} else {
		recallRuns(hooks, state.Hooks{})
	}

	err := s.runEach(rel, event, hooks)

	slices.Reverse(hooks)

	for _, h := range hooks {
		if err == nil {
			err = s.deleteHook(h, helm.DeleteSucceeded)
		}
	}

	if err == nil || errors.As(err, new(*cluster.HookError)) {
		return err
	}

	return fmt.Errorf("%s %w", event, err)
}

// recallRuns replaces what a record says of the last runs of hooks by what is known of them.
func recallRuns(hooks []*helm.Hook, known state.Hooks) {
	for i, h := range hooks {
		switch {
		case i < known.Begun-1 && h.LastRun.Phase == helm.PhaseSucceeded:
		case i < known.Begun-1:
			h.LastRun = helm.HookExecution{Phase: helm.PhaseSucceeded}
		case i == known.Begun-1:
			h.LastRun.StartedAt, h.LastRun.Phase = helm.At(known.StartedAt), helm.HookPhase(known.Phase)
		default:
			h.LastRun = helm.HookExecution{}
		}
	}
}

// runEach runs the hooks that have not run yet. Those of an uninstall that failed run again.
func (s *session) runEach(rel *helm.Release, event helm.HookEvent, hooks []*helm.Hook) error {
	again := event == helm.HookPreDelete || event == helm.HookPostDelete

	for i, h := range hooks {
		failed := h.LastRun.Phase == helm.PhaseFailed

		switch {
		case h.LastRun.Phase == helm.PhaseSucceeded:
			continue
		case failed && !again:
			s.deleteFailed(h, hooks[:i])
			return fmt.Errorf("hook %s failed", h.Name)
		case failed:
			h.LastRun = helm.HookExecution{}
		}

		ran, err := s.runHook(rel, hookRun{event, hooks, i})
		if err == nil {
			continue
		}

		if ran && h.LastRun.Phase == helm.PhaseFailed {
			s.deleteFailed(h, hooks[:i])
		}

		return err
	}

	return nil
}

// hooksOf returns the hooks of a revision for an event, in the order in which they run: by weight and name, and those
// with the same ones by kind.
func hooksOf(rel *helm.Release, event helm.HookEvent) []*helm.Hook {
	var hooks []*helm.Hook

	for _, h := range rel.Hooks { // by kind
		if slices.Contains(h.Events, event) {
			hooks = append(hooks, h)
		}
	}

	slices.SortStableFunc(hooks, func(a, b *helm.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name))
	})

	return hooks
}

// hookRun is one of the hooks for an event.
type hookRun struct {
	event helm.HookEvent
	hooks []*helm.Hook
	index int
}

// announceHook announces that a hook has begun, or another phase of it.
func (s *session) announceHook(rel *helm.Release, run hookRun) error {
	last := run.hooks[run.index].LastRun
	begun := state.Hooks{
		Event: string(run.event), Begun: run.index + 1, Phase: string(last.Phase), StartedAt: helm.TimeOf(last.StartedAt),
	}

	if last.Phase == "" {
		begun = state.Hooks{Event: string(run.event)}
	}

	if err := s.store.AnnounceHooks(rel, begun); err != nil {
		return err
	}

	s.hooks = begun

	return nil
}

// beginHook announces that a hook begins. What has to be deleted before that may take long: then it is known that the
// hooks are next.
func (s *session) beginHook(rel *helm.Release, run hookRun) error {
	h := run.hooks[run.index]

	err := s.deleteHook(h, helm.DeleteBeforeCreation)
	if errors.As(err, new(*cluster.HookError)) && helm.HookEvent(s.hooks.Event) != run.event {
		return cmp.Or(s.announceHook(rel, run), err)
	}

	if err != nil {
		return err
	}

	h.LastRun = helm.HookExecution{StartedAt: helm.At(s.engine.clock.Now()), Phase: helm.PhaseUnknown}

	return s.announceHook(rel, run)
}

// runHook creates the objects of a hook, and announces how it has ended, as far as the next hook does not tell it.
// Before they are created it is announced that the phase is unknown, and then that it is running: what was created is
// not created again, even if it is gone. ran reports whether they were created.
func (s *session) runHook(rel *helm.Release, run hookRun) (ran bool, err error) {
	h := run.hooks[run.index]

	objects, err := s.client.Hook(h.Manifest)
	if err != nil {
		return false, err
	}

	announced := h.LastRun.Phase != ""
	if !announced {
		if err := s.beginHook(rel, run); err != nil {
			return false, err
		}
	}

	ran = h.LastRun.Phase == helm.PhaseRunning
	if !ran {
		err = s.client.CreateHook(objects, announced)
		ran = err == nil
	}

	if ran {
		err = s.client.CheckHook(objects, helm.TimeOf(h.LastRun.StartedAt), s.hookTime())
	}

	before := h.LastRun.Phase

	switch {
	case err == nil:
		h.LastRun.Phase = helm.PhaseSucceeded
	case errors.As(err, new(*cluster.HookError)):
		h.LastRun.Phase = helm.PhaseRunning
	default:
		h.LastRun.Phase = helm.PhaseFailed
	}

	if h.LastRun.Phase == before {
		return ran, err
	}

	return ran, cmp.Or(s.endRun(rel, run), err)
}

// endRun announces the new phase of a hook. That it could not be announced comes first: an action that ended would have
// lost it. The record has the runs once the last hook has ended.
func (s *session) endRun(rel *helm.Release, run hookRun) error {
	h, last := run.hooks[run.index], run.index == len(run.hooks)-1

	if h.LastRun.Phase == helm.PhaseRunning {
		return s.announceHook(rel, run)
	}

	h.LastRun.CompletedAt = helm.At(s.engine.clock.Now())

	if h.LastRun.Phase == helm.PhaseSucceeded && !last {
		return nil
	}

	return cmp.Or(s.announceHook(rel, run), s.store.Record(rel))
}

// deleteFailed deletes the objects of a hook that failed, and of the ones before it that did not, as far as their
// policies say so. It does not wait until they are gone: that the hook failed is more important.
func (s *session) deleteFailed(failed *helm.Hook, before []*helm.Hook) {
	policy := helm.DeleteFailed

	for _, h := range slices.Concat([]*helm.Hook{failed}, before) {
		err := s.deleteHook(h, policy)
		policy = helm.DeleteSucceeded

		if err != nil && !errors.As(err, new(*cluster.HookError)) {
			s.log.Info("The objects of a hook that failed, or of one before it, could not be deleted", "problem", err.Error())
		}
	}
}

// deleteHook deletes the objects of a hook if it has a policy.
func (s *session) deleteHook(h *helm.Hook, policy helm.HookDeletePolicy) error {
	// A record of an earlier version of this program, or of Helm, has no policies for the default one.
	isDefault := len(h.DeletePolicies) == 0 && policy == helm.DeleteBeforeCreation
	if !isDefault && !slices.Contains(h.DeletePolicies, policy) {
		return nil
	}

	return s.client.DeleteHook(h.Manifest, s.hookTime())
}

func (s *session) hookTime() cluster.HookTime {
	return cluster.HookTime{Now: s.engine.clock.Now(), Limit: s.engine.options.HookTimeout}
}
