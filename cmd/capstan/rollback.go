package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// rollbackOptions are the flags of `rollback`.
type rollbackOptions struct {
	management *management
	undo, wait bool
	timeout    time.Duration
}

func rollbackCommand() *cobra.Command {
	o := &rollbackOptions{}

	const usage = "rollback PROVIDER [REVISION]"

	cmd := &cobra.Command{
		Use:   usage,
		Short: "Return a provider to an earlier revision of its release",
		Long: `Return a provider to an earlier revision of its release, and keep it there until --undo: the resource's spec.release.rollbackTo is set.
CRDs stay as they are. Without REVISION it is the newest one before the current that was healthy; capstan history shows all, and
capstan diff PROVIDER --revision REVISION what would change.`,
		Example: `  capstan rollback infrastructure-aws
  capstan rollback infrastructure-aws 3
  capstan rollback infrastructure-aws --undo`,
		Args: oneProvider(usage, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.undo && len(args) > 1 {
				return errors.New("--undo takes no revision: it returns to what the rest of the spec says")
			}

			if err := o.management.connect(); err != nil {
				return err
			}

			return o.run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
	o.management = managementFlags(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVar(&o.undo, "undo", false, "return to what the rest of the spec says")
	flags.BoolVar(&o.wait, "wait", true, "wait until the provider is ready")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "how long to wait")

	return cmd
}

func (o *rollbackOptions) run(ctx context.Context, args []string, out io.Writer) error {
	p, err := o.management.find(ctx, args[0])
	if err != nil {
		return err
	}

	var to any // nil removes the field

	if !o.undo {
		revision, err := o.revision(ctx, p, args[1:])
		if err != nil {
			return err
		}

		to = revision.Number
		fmt.Fprintf(out, "%s is to return to revision %d, which holds %s\n", nameOf(p), revision.Number, revision.Version)
	}

	if err := o.management.merge(
		ctx,
		p,
		map[string]any{"spec": map[string]any{"release": map[string]any{"rollbackTo": to}}},
	); err != nil {
		return err
	}

	if !o.wait {
		return nil
	}

	return o.management.waitReady(ctx, p, o.timeout, out)
}

// revision finds the one to return to.
func (o *rollbackOptions) revision(ctx context.Context, p v1alpha2.Provider, args []string) (state.Revision, error) {
	name := v1alpha2.ReleaseName(p)

	observed, err := o.management.releases.Observe(ctx, p.GetNamespace(), name)
	if err != nil {
		return state.Revision{}, err
	}

	if len(args) == 0 {
		for i, r := range observed.Revisions {
			if i > 0 && r.Healthy {
				return r, nil
			}
		}

		return state.Revision{}, fmt.Errorf(
			"release %s/%s has no earlier revision that was healthy; `capstan history %s` shows what there is",
			p.GetNamespace(),
			name,
			v1alpha2.Label(p),
		)
	}

	number, err := strconv.Atoi(args[0])
	if err != nil {
		return state.Revision{}, fmt.Errorf(
			"revision %q is not a number; `capstan history %s` shows what there is",
			args[0],
			v1alpha2.Label(p),
		)
	}

	return findRevision(observed, number)
}

// findRevision finds an observed revision by its number.
func findRevision(observed state.History, number int) (state.Revision, error) {
	for _, r := range observed.Revisions {
		if r.Number == number {
			return r, nil
		}
	}

	return state.Revision{}, fmt.Errorf(
		"release %s/%s has no revision %d (any more); `helm history %s -n %s` shows what there is",
		observed.Namespace,
		observed.Name,
		number,
		observed.Name,
		observed.Namespace,
	)
}

// waitReady waits until the operator has made of the resource what it asks for now. That it cannot
// is an error.
func (m *management) waitReady(ctx context.Context, p v1alpha2.Provider, timeout time.Duration, out io.Writer) error {
	tell := func(state string) { fmt.Fprintln(out, state) }

	return m.wait(ctx, p, timeout, tell, func(now v1alpha2.Provider) (bool, error) {
		switch {
		case now == nil:
			return false, fmt.Errorf("%s was deleted meanwhile", nameOf(p))
		case now.GetStatus().ObservedGeneration != now.GetGeneration():
			return false, nil
		case conditions.IsReady(now):
			tell(fmt.Sprintf("%s: %s", nameOf(now), readiness(now)))
			return true, nil
		case conditions.IsStalled(now):
			return false, fmt.Errorf("%s cannot go on: %s", nameOf(now), readiness(now))
		}

		return false, nil
	})
}
