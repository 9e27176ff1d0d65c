package main

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// historyOptions are the flags of `history`.
type historyOptions struct {
	management *management
	screen     *screen
	now        func() time.Time
}

func historyCommand() *cobra.Command {
	o := &historyOptions{now: time.Now}

	const usage = "history PROVIDER"

	cmd := &cobra.Command{
		Use:   usage,
		Short: "Show the revisions of a provider's release",
		Long: `Show the revisions of a provider's release, oldest first, as helm history does, and of each what Helm does not know: who made it,
whether its objects were healthy once, and the digest of its chart.`,
		Args: oneProvider(usage, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.screen.open(cmd.OutOrStdout()), o.management.connect()); err != nil {
				return err
			}

			return o.run(cmd.Context(), args[0])
		},
	}
	o.management = managementFlags(cmd.Flags())
	o.screen = screenFlags(cmd.Flags(), "json", "yaml")

	return cmd
}

// revisionView is one entry in a history.
type revisionView struct {
	Revision int       `json:"revision"`
	Updated  time.Time `json:"updated"`
	Status   string    `json:"status"`
	Version  string    `json:"version,omitempty"`
	// By is who made it: capstan, or helm for any other program.
	By string `json:"by"`
	// Healthy says that all its objects were healthy once, Failure why it failed, as far as Capstan
	// saw it.
	Healthy bool          `json:"healthy"`
	Failure state.Failure `json:"failure,omitempty"`
	// Digest of the chart; empty if another program made the revision.
	Digest      string `json:"chartDigest,omitempty"`
	Description string `json:"description,omitempty"`
}

func (o *historyOptions) run(ctx context.Context, argument string) error {
	p, err := o.management.find(ctx, argument)
	if err != nil {
		return err
	}

	name := v1alpha2.ReleaseName(p)

	observed, err := o.management.releases.Observe(ctx, types.NamespacedName{Namespace: p.GetNamespace(), Name: name})
	if err != nil {
		return err
	}

	views := make([]revisionView, len(observed.Revisions))
	for i, r := range observed.Revisions {
		record, err := o.management.releases.Read(ctx, observed.Release, r)

		corrupt := new(release.CorruptError)
		switch {
		case errors.As(err, &corrupt):
			record = &release.Record{Description: "The record cannot be read: " + corrupt.Reason}
		case errors.Is(err, release.ErrChanged):
			record = &release.Record{Description: "The record has just been removed"}
		case err != nil:
			return err
		}

		views[len(views)-1-i] = viewRevision(r, record)
	}

	return o.print(views)
}

func viewRevision(r state.Revision, record *release.Record) revisionView {
	v := revisionView{
		Revision: r.Number, Updated: r.Created, Status: string(r.Status), Version: cmp.Or(record.AppVersion, r.Version),
		By: "helm", Healthy: r.Healthy, Failure: r.Failure, Digest: r.ChartDigest, Description: record.Description,
	}
	if r.Ours() {
		v.By = "capstan"
	}

	return v
}

// health is what there is to say about the revision's health in a word.
func (v revisionView) health() string {
	switch {
	case v.Healthy:
		return "yes"
	case v.Status == string(state.StatusFailed):
		return "no"
	default:
		return "?"
	}
}

func (o *historyOptions) print(views []revisionView) error {
	if done, err := o.screen.data(views); done {
		return err
	}

	rows := [][]string{{"REVISION", "AGE", "STATUS", "HEALTHY", "VERSION", "BY", "CHART", "DESCRIPTION"}}
	for _, v := range views {
		rows = append(rows, []string{
			strconv.Itoa(v.Revision),
			duration.HumanDuration(o.now().Sub(v.Updated)),
			v.Status,
			v.health(),
			v.Version,
			v.By,
			short(v.Digest),
			v.Description,
		})
	}

	o.screen.table(rows, func(row, column int) style {
		switch {
		case row == 0:
			return bold
		case column != 2:
			return plain
		case views[row-1].Status == string(state.StatusDeployed):
			return green
		case views[row-1].Status == string(state.StatusFailed):
			return red
		default:
			return plain
		}
	})

	return nil
}

// short is a digest as far as people compare it.
func short(digest string) string {
	const most = 12

	hex := strings.TrimPrefix(digest, "sha256:")

	return hex[:min(len(hex), most)]
}
