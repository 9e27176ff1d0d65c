package release

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/chartgen/helm"
)

// runHooks runs the hooks of a revision for an event, one after the other, by Helm's rules. Hooks that have run since a
// time, in an earlier attempt, do not run again; the zero time runs all of them.
func (s *session) runHooks(rel *helm.Release, event helm.HookEvent, since helm.Time) error {
	hooks := hooksOf(rel, event)

	for i, h := range hooks {
		phase := phaseSince(h, event, since)
		if phase == helm.PhaseSucceeded {
			continue
		}

		ran, err := s.runHook(rel, h, phase == helm.PhaseRunning)
		if err == nil {
			continue
		}

		if ran {
			s.deleteFailed(h, hooks[:i])
		}

		return fmt.Errorf("%s %w", event, err)
	}

	slices.Reverse(hooks)

	for _, h := range hooks {
		if err := s.deleteHook(h, helm.DeleteSucceeded); err != nil {
			return fmt.Errorf("%s %w", event, err)
		}
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

// earlierEvents are the events that come before others in the same action.
var earlierEvents = map[helm.HookEvent]helm.HookEvent{
	helm.HookPostInstall:  helm.HookPreInstall,
	helm.HookPostUpgrade:  helm.HookPreUpgrade,
	helm.HookPostRollback: helm.HookPreRollback,
	helm.HookPostDelete:   helm.HookPreDelete,
}

// phaseSince returns how far the run of a hook has come that has begun since a time; empty if there was none. A record
// does not tell for which event a hook has run.
func phaseSince(h *helm.Hook, event helm.HookEvent, since helm.Time) helm.HookPhase {
	if since.IsZero() || h.LastRun.StartedAt.Before(since) || slices.Contains(h.Events, earlierEvents[event]) {
		return ""
	}

	return h.LastRun.Phase
}

// runHook creates the objects of a hook, unless an earlier attempt has, and waits until they have completed. ran
// reports whether they were created.
func (s *session) runHook(rel *helm.Release, h *helm.Hook, started bool) (ran bool, err error) {
	objects, err := s.client.Hook(h.Manifest)
	if err != nil {
		return false, err
	}

	if !started {
		if err := s.deleteHook(h, helm.DeleteBeforeCreation); err != nil {
			return false, err
		}

		h.LastRun = helm.HookExecution{StartedAt: helm.At(s.engine.clock.Now()), Phase: helm.PhaseRunning}
		if err := s.store.Record(rel); err != nil {
			return false, err
		}
	}

	if err = s.client.CreateHook(objects, started); err == nil {
		ran = true
		err = s.client.AwaitHook(objects, s.engine.options.HookTimeout)
	}

	h.LastRun.CompletedAt = helm.At(s.engine.clock.Now())
	h.LastRun.Phase = helm.PhaseSucceeded

	if err != nil {
		h.LastRun.Phase = helm.PhaseFailed
	}

	return ran, cmp.Or(err, s.store.Record(rel))
}

// deleteFailed deletes the objects of a hook that failed, and of the ones before it that did not, as far as their
// policies say so. That the hook failed is more important than an error of this.
func (s *session) deleteFailed(failed *helm.Hook, before []*helm.Hook) {
	err := s.deleteHook(failed, helm.DeleteFailed)
	for _, h := range before {
		err = cmp.Or(err, s.deleteHook(h, helm.DeleteSucceeded))
	}

	if err != nil {
		s.log.Info("The objects of a hook that failed, or of one before it, could not be deleted", "problem", err.Error())
	}
}

// deleteHook deletes the objects of a hook if it has a policy.
func (s *session) deleteHook(h *helm.Hook, policy helm.HookDeletePolicy) error {
	// A record of an earlier version of this program, or of Helm, has no policies for the default one.
	isDefault := len(h.DeletePolicies) == 0 && policy == helm.DeleteBeforeCreation
	if !isDefault && !slices.Contains(h.DeletePolicies, policy) {
		return nil
	}

	return s.client.DeleteHook(h.Manifest, s.engine.options.HookTimeout)
}
