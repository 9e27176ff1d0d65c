package providers

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// digest is the column that has no place on most terminals.
const digest = 7

// NewHistoryCommand returns `capstan history`.
func NewHistoryCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history PROVIDER",
		Short: "Show the revisions of a provider's release",
		Long: `The oldest revision comes first, as in helm history. The table adds what Helm
does not know: which program created a revision and why, whether its objects
became healthy, and the digest of its chart.`,
		Example: `  capstan history infrastructure-aws
  capstan history infrastructure-aws -o yaml`,
		Args:              cli.Arguments(1, 1, "one provider"),
		ValidArgsFunction: cli.CompleteProvider,
	}
	flags := cli.AddClusterFlags(cmd.Flags())
	output := cli.AddOutputFlags(cmd.Flags())

	cmd.RunE = cli.Run(func(ctx context.Context, args []string) error {
		printer, cluster, err := o.Connect(output, flags)
		if err != nil {
			return err
		}

		p, err := cluster.Find(ctx, args[0])
		if err != nil {
			return err
		}

		views, err := cluster.Views().History(ctx, p)
		if err != nil {
			return err
		}

		return printHistory(printer, views, time.Now())
	})

	return cmd
}

// revisionStyles are those of revisions that say more than others.
var revisionStyles = map[v1alpha2.RevisionStatus]cli.Style{
	v1alpha2.RevisionDeployed: cli.Green, v1alpha2.RevisionFailed: cli.Red,
}

func printHistory(printer *cli.Printer, views []view.Revision, now time.Time) error {
	columns := func(all ...string) []string {
		switch width := printer.Width; {
		case width > 0 && width < narrow:
			return []string{all[0], all[1], all[2], all[4], all[6], all[8]}
		case width > 0 && width < 2*narrow:
			return slices.Delete(all, digest, digest+1)
		}

		return all
	}
	header := columns("REVISION", "AGE", "STATUS", "HEALTHY", "VERSION", "BY", "REASON", "CHART", "DESCRIPTION")

	return cli.PrintList(printer, header, views, func(v view.Revision) cli.Row {
		return cli.Row{Style: revisionStyles[v.Status], Cells: columns(
			strconv.Itoa(v.Revision),
			duration.HumanDuration(now.Sub(v.Updated)),
			string(v.Status),
			v.Health(),
			v.Version,
			v.By,
			v.Reason,
			view.ShortDigest(v.Digest),
			v.Description,
		)}
	})
}
