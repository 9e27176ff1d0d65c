package providers

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/crds/trial"
)

// findDropped completes plans with the CRDs that the new versions do not include. They are not known of clusters other
// than that of the resources, nor of versions that cannot be fetched, which causes a warning.
func findDropped(
	ctx context.Context, o *cli.Options, planner *cli.Planner, installed []*installedProvider, plans []upgradePlan,
) error {
	var group errgroup.Group

	group.SetLimit(parallelSources)

	byResource := map[string]*installedProvider{}
	for _, p := range installed {
		byResource[p.Resource] = p
	}

	for i := range plans {
		for j := range plans[i].Steps {
			step := &plans[i].Steps[j]

			provider := byResource[step.Resource]
			if step.To == "" || provider.Cluster != "" {
				continue
			}

			group.Go(func() error {
				dropped, report, err := planner.Dropped(ctx, provider.resource, step.To)
				if err != nil {
					o.Warnf("it is unknown which CRDs %s %s does not include: %s", step.Provider, step.To, err)
					return ctx.Err()
				}

				step.DroppedCRDs, step.Findings = dropped, texts(report)

				return nil
			})
		}
	}

	return group.Wait()
}

// texts returns the findings of a report, which may be nil.
func texts(report *trial.Report) []string {
	if report == nil {
		return nil
	}

	return cli.Map(report.Findings, trial.Finding.String)
}

// printDropped prints which CRDs a version does not include, and what that leaves.
func printDropped(printer *cli.Printer, version string, dropped, findings []string) {
	for _, name := range dropped {
		printCRD(printer, name, fmt.Sprintf("kept, although %s does not include it", version))
	}

	for _, finding := range findings {
		printer.Printf("%s", printer.Paint(cli.Yellow, finding))
	}
}
