// Command capstan works with provider charts and with the providers of a management cluster. If it
// is installed as kubectl-capstan, it is also a kubectl plugin.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capstan-project/capstan/cmd/capstan/internal/charts"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/providers"
	"github.com/capstan-project/capstan/cmd/capstan/internal/setup"
)

// version is set by the linker.
var version = "dev"

func main() {
	options := &cli.Options{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Program:   displayName(os.Args[0]),
		Version:   version,
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what does not look at the context, such as a read from a pipe

	root := newRootCommand(options)
	refuseMisspelt(root)

	err := root.ExecuteContext(ctx)
	interrupted := ctx.Err() != nil && errors.Is(err, context.Canceled)

	stop()

	exit := &cli.ExitError{Code: 1, Err: err}
	errors.As(err, &exit)

	if unreachable := new(cli.UnreachableError); errors.As(exit.Err, &unreachable) {
		exit.Err = unreachable // whatever was asked
	}

	if interrupted { // which is no reason of what the error is about
		exit.Err = errors.New("interrupted")
	}

	if exit.Err != nil {
		fmt.Fprintln(os.Stderr, "Error:", cli.Text(options.Named(exit.Err.Error())))
	}

	if err != nil {
		os.Exit(exit.Code)
	}
}

// refuseMisspelt makes the commands that only have others, which cobra adds some of, refuse words that name none.
func refuseMisspelt(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()

	for _, cmd := range root.Commands() {
		switch {
		case cmd.Name() == "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return err
			}
		case cmd.HasSubCommands():
			cli.RefuseUnknown(cmd)
		}
	}
}

// displayName returns what users type to run a program: "kubectl capstan" if it was started as a kubectl plugin.
func displayName(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if plugin, isPlugin := strings.CutPrefix(name, "kubectl-"); isPlugin {
		return "kubectl " + plugin
	}

	return cli.ProgramName
}

func newRootCommand(options *cli.Options) *cobra.Command {
	root := &cobra.Command{
		Use:         cli.ProgramName,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: options.Program},
		Short:       "Install, upgrade and check Cluster API providers as Helm releases",
		Example: `  capstan init --infrastructure aws
  capstan status`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Install", []*cobra.Command{
			setup.NewCommand(options),
			setup.NewAdoptCommand(options),
			setup.NewUninstallCommand(options),
			charts.NewMirrorCommand(options),
			charts.NewListCommand(options),
			providers.NewPermissionsCommand(options),
		}},
		{"Inspect", []*cobra.Command{
			providers.NewStatusCommand(options),
			providers.NewHistoryCommand(options),
			providers.NewDiffCommand(options),
			newUICommand(options),
		}},
		{"Change", append(providers.NewSuspensionCommands(options),
			providers.NewUpgradeCommand(options),
			providers.NewReconcileCommand(options),
			providers.NewRollbackCommand(options),
			providers.NewDeleteCommand(options),
		)},
		{"Check and build", []*cobra.Command{
			charts.NewLintCommand(options),
			newAuditCommand(options),
			charts.NewCommand(options),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})

		for _, cmd := range group.commands {
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}

	for name, words := range otherWords {
		if cmd, _, err := root.Find([]string{name}); err == nil {
			cmd.SuggestFor = words
		}
	}

	root.AddCommand(newVersionCommand(options))

	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) { options.Repeat(cmd.Flags()) }
	root.SetFlagErrorFunc(cli.FlagError)
	cobra.AddTemplateFunc("usages", func(flags *pflag.FlagSet) string {
		return flags.FlagUsagesWrapped(cli.Width(os.Stdout))
	})
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(usageTemplate)
	cli.AddCompletions(root)
	nameProgram(root, options.Program)

	return root
}

// otherWords are what other programs call what commands do, to be suggested.
var otherWords = map[string][]string{
	"init":      {"install", "bootstrap"},
	"adopt":     {"import", "migrate", "takeover"},
	"mirror":    {"images", "copy", "pull"},
	"providers": {"versions", "catalog", "search", "repo"},
	"status":    {"list", "ls", "get", "describe", "show", "events", "logs", "tree", "top"},
	"history":   {"revisions", "log"},
	"diff":      {"compare", "template"},
	"upgrade":   {"update", "plan", "apply", "set"},
	"reconcile": {"retry", "sync", "refresh", "reapply", "restart"},
	"rollback":  {"undo", "revert"},
	"suspend":   {"hold", "disable"},
	"pause":     {"stop", "scale"},
	"unpause":   {"start"},
	"delete":    {"remove", "rm"},
	"lint":      {"validate", "verify"},
	"audit":     {"scan"},
}

// helpTemplate shows the examples first.
const helpTemplate = `{{.Short}}.
{{if .HasExample}}
{{.Example}}
{{end}}{{with .Long}}
{{. | trimTrailingWhitespaces}}
{{end}}
{{.UsageString}}`

// usageTemplate is that of cobra without aliases and examples. It only mentions the flags of kubectl that are hidden.
const usageTemplate = `Usage:{{if and .Runnable (not .HasAvailableSubCommands)}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND
{{$all := .Commands}}{{range $group := .Groups}}
{{.Title}}:{{range $all}}{{if eq .GroupID $group.ID}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}
{{if .Groups}}Other commands{{else}}Commands{{end}}:{{range $all}}
{{- if and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{usages .LocalFlags | trimTrailingWhitespaces}}{{with .LocalFlags.Lookup "as"}}

kubectl's other connection flags, such as --as and --server, work as well.{{end}}{{end}}
{{- if .HasAvailableSubCommands}}

Use "{{.CommandPath}} COMMAND --help" for more information about a command.{{end}}
`

// nameProgram changes the program's name in the help of a command and of all its subcommands.
func nameProgram(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "  "+cli.ProgramName+" ", "  "+name+" ")
	cmd.Long = strings.ReplaceAll(cmd.Long, `"`+cli.ProgramName+" ", `"`+name+" ")

	for _, sub := range cmd.Commands() {
		nameProgram(sub, name)
	}
}
