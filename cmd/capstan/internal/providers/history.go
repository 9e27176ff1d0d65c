package providers

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/completion"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// historyOptions are the flags of `history`.
type historyOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	output  *cli.OutputFlags
}

// NewHistoryCommand returns `capstan history`.
func NewHistoryCommand(options *cli.Options) *cobra.Command {
	o := &historyOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "history PROVIDER",
		Short: "Show the revisions of a provider's release",
		Long: `Show the revisions of a provider's release, oldest first, like helm history. It adds what Helm does
not know: which program created a revision, whether its objects became healthy, and the digest of
its chart.`,
		Args:              cli.Arguments(1, 1, "one provider"),
		ValidArgsFunction: completion.Provider,
		RunE:              cli.Run(o.run),
	}
	o.cluster = cli.AddClusterFlags(cmd.Flags())
	o.output = cli.AddOutputFlags(cmd.Flags())

	return cmd
}

// revisionView is a revision in the history.
type revisionView struct {
	Revision int       `json:"revision"`
	Updated  time.Time `json:"updated"`
	Status   string    `json:"status"`
	Version  string    `json:"version,omitempty"`
	// By is the program that created it: capstan, or helm for any other one.
	By string `json:"by"`
	// Healthy means that all objects of the revision were healthy at some point. Failure is why the
	// revision failed, if the operator knows.
	Healthy bool          `json:"healthy"`
	Failure state.Failure `json:"failure,omitempty"`
	// Digest of the chart; empty if another program created the revision.
	Digest      string `json:"chartDigest,omitempty"`
	Description string `json:"description,omitempty"`
}

func (o *historyOptions) run(ctx context.Context, args []string) error {
	printer, cluster, err := o.Connect(o.output, o.cluster)
	if err != nil {
		return err
	}

	p, err := cluster.Find(ctx, args[0])
	if err != nil {
		return err
	}

	observed, err := cluster.Releases.Observe(ctx, plan.ReleaseKey(p))
	if err != nil {
		return err
	}

	views := make([]revisionView, len(observed.Revisions))

	for i, r := range observed.Revisions { // newest first
		record, err := readRecord(ctx, cluster, observed, r)
		if err != nil {
			return err
		}

		views[len(views)-1-i] = newRevisionView(r, record)
	}

	return printHistory(printer, views, time.Now())
}

// readRecord reads the record of a revision. If it cannot be read, its description is the reason.
func readRecord(
	ctx context.Context,
	cluster *cli.Cluster,
	observed state.History,
	r state.Revision,
) (*release.Record, error) {
	record, err := cluster.Releases.Read(ctx, observed.Release, r)

	corrupt := new(release.CorruptError)

	switch {
	case errors.As(err, &corrupt):
		return &release.Record{Description: "The record cannot be read: " + corrupt.Reason}, nil
	case errors.Is(err, release.ErrChanged):
		return &release.Record{Description: "The record was just removed"}, nil
	}

	return record, err
}

func newRevisionView(r state.Revision, record *release.Record) revisionView {
	v := revisionView{
		Revision:    r.Number,
		Updated:     r.Created,
		Status:      string(r.Status),
		Version:     cmp.Or(record.AppVersion, r.Version),
		By:          "helm",
		Healthy:     r.Healthy,
		Failure:     r.Failure,
		Digest:      r.ChartDigest,
		Description: record.Description,
	}
	if r.Ours() {
		v.By = "capstan"
	}

	return v
}

// health summarizes the revision's health in one word.
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

func (v revisionView) style() cli.Style {
	switch v.Status {
	case string(state.StatusDeployed):
		return cli.Green
	case string(state.StatusFailed):
		return cli.Red
	default:
		return cli.Plain
	}
}

func printHistory(printer *cli.Printer, views []revisionView, now time.Time) error {
	return printer.Print(views, func() error {
		header := []string{"REVISION", "AGE", "STATUS", "HEALTHY", "VERSION", "BY", "CHART", "DESCRIPTION"}
		rows := make([]cli.Row, 0, len(views))

		for _, v := range views {
			rows = append(rows, cli.Row{Style: v.style(), Cells: []string{
				strconv.Itoa(v.Revision),
				duration.HumanDuration(now.Sub(v.Updated)),
				v.Status,
				v.health(),
				v.Version,
				v.By,
				shortDigest(v.Digest),
				v.Description,
			}})
		}

		return printer.Table(header, rows)
	})
}

// shortDigest returns as much of a digest as users compare.
func shortDigest(digest string) string {
	const length = 12

	hex := strings.TrimPrefix(digest, "sha256:")

	return hex[:min(len(hex), length)]
}
