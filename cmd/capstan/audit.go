package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/contract/audit"
	"github.com/capstan-project/capstan/controllers/usage"
)

// The default limits of an audit.
const (
	auditObjects = 5000
	auditTimeout = 5 * time.Minute
)

// auditOptions are the flags of `audit`.
type auditOptions struct {
	*cli.Options

	cluster  *cli.ClusterFlags
	findings *cli.FindingsFlags
	audit    audit.Options
	limits   audit.Limits
}

// newAuditCommand returns `capstan audit`.
func newAuditCommand(options *cli.Options) *cobra.Command {
	o := &auditOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "audit [PROVIDER...]",
		Short: "Check running providers against Cluster API's contracts",
		Long: `Check the CRDs of providers, their objects, and the Secrets of workload
clusters: owner references, labels, conditions, pausing, kubeconfigs, stored
versions, and what clusterctl move would leave behind. Without arguments, all
providers are checked, including those that Capstan does not manage.

Nothing is changed, workload clusters are not accessed, and contents of Secrets
are not printed. What you may not read is a finding of the level info.

The exit code is 2 for findings of the --fail-on level or worse, and 1 for other
errors.`,
		Example: `  capstan audit
  capstan audit infrastructure-aws --fail-on warning
  capstan audit -o json`,
		Args:              cli.Arguments(0, -1, "any number of providers"),
		ValidArgsFunction: cli.CompleteProviders,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.findings = cli.AddFindingsFlags(flags)
	flags.IntVar(&o.limits.Objects, "limit", auditObjects, "Maximum number of objects of each kind to read.")
	flags.DurationVar(&o.limits.Timeout, "timeout", auditTimeout, "How long to read from the cluster.")
	flags.DurationVar(&o.audit.DeletionTimeout, "deletion-timeout", audit.DefaultDeletionTimeout,
		"How long the deletion of an object may take.")

	return cmd
}

func (o *auditOptions) run(ctx context.Context, args []string) error {
	if o.limits.Objects < 1 || o.limits.Timeout <= 0 || o.audit.DeletionTimeout < 0 {
		return errors.New("--limit and --timeout must be positive, and --deletion-timeout not negative")
	}

	report, err := o.findings.Report(o.Out)
	if err != nil {
		return err
	}

	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	if len(args) > 0 || cluster.Namespace != "" { // otherwise all, also those that Capstan does not manage
		selected, err := cluster.FindAll(ctx, args)
		if err != nil {
			return err
		}

		o.audit.Providers = cli.Map(selected, v1alpha2.Label)
	}

	// They say what types of objects they manage. Without them, only the known types of providers are checked.
	managers, unread := cluster.AllProviders(ctx)

	snapshot, err := audit.Read(ctx, cluster.Config, usage.TypesByLabel(managers), o.limits)
	if err != nil {
		return err
	}

	if unread != nil {
		snapshot.Unread = append(snapshot.Unread, audit.Unread{Name: audit.ProvidersName, Reason: unread.Error()})
	}

	subject := "the management cluster"
	if len(args) > 0 {
		subject = strings.Join(args, ", ")
	}

	return report.Print(subject, audit.Check(snapshot, o.audit))
}
