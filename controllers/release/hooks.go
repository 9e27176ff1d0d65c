package release

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/storage"
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
// is a *cluster.HookError until the last one has ended, and the next call continues from what the record says.
func (s *session) runHooks(rel *helm.Release, event helm.HookEvent) error {
	hooks := hooksOf(rel, event)
	running := helm.HookEvent(rel.Labels[storage.HooksLabel])

	if len(hooks) == 0 || earlierEvents[running] == event {
		return nil
	}

	if len(hooks) > maxHooks {
		return fmt.Errorf("the chart has more than %d %s hooks", maxHooks, event)
	}

	if running != event {
		if err := s.beginHooks(rel, event, hooks); err != nil {
			return err
		}
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

// beginHooks records that the hooks for an event are next. The last run of a hook in a record may be about
// another event.
func (s *session) beginHooks(rel *helm.Release, event helm.HookEvent, hooks []*helm.Hook) error {
	rel.Labels[storage.HooksLabel] = string(event)

	for _, h := range hooks {
		h.LastRun = helm.HookExecution{}
	}

	return s.store.Record(rel)
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

		ran, err := s.runHook(rel, h)
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

// runHook creates the objects of a hook, and records how it has ended. Before they are created the phase is recorded
// as unknown, and then as running: what was created is not created again, even if it is gone. ran reports whether they
// were created.
func (s *session) runHook(rel *helm.Release, h *helm.Hook) (ran bool, err error) {
	objects, err := s.client.Hook(h.Manifest)
	if err != nil {
		return false, err
	}

	recorded := h.LastRun.Phase != ""
	if !recorded {
		if err := s.deleteHook(h, helm.DeleteBeforeCreation); err != nil {
			return false, err
		}

		h.LastRun = helm.HookExecution{StartedAt: helm.At(s.engine.clock.Now()), Phase: helm.PhaseUnknown}
		if err := s.store.Record(rel); err != nil {
			return false, err
		}
	}

	ran = h.LastRun.Phase == helm.PhaseRunning
	if !ran {
		err = s.client.CreateHook(objects, recorded)
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

	if h.LastRun.Phase != helm.PhaseRunning {
		h.LastRun.CompletedAt = helm.At(s.engine.clock.Now())
	}

	// That a hook could not be recorded comes first: an action that ended would have lost it.
	return ran, cmp.Or(s.store.Record(rel), err)
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
