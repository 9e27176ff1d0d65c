// Package cli holds what the commands of capstan share: their streams, the connection to the
// management cluster, completion, the output formats, and waiting for the operator.
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// ProgramName is the name of the program, which examples and hints begin with.
const ProgramName = "capstan"

// Options are passed to all commands.
type Options struct {
	genericiooptions.IOStreams

	// Program is what users type to run the program, if that is not its name: "kubectl capstan".
	Program string
	// Version of the program; empty if it is unknown.
	Version string

	// repeated are the flags that all commands need to find the same cluster and namespace.
	repeated []*pflag.Flag
}

// ProgramVersion returns the version of this program.
func (o *Options) ProgramVersion() ProgramVersion {
	return ProgramVersion{Version: o.Version, ChartFormat: chartgen.Version}
}

// Repeat notes the flags of a command that the commands which it proposes need as well.
func (o *Options) Repeat(flags *pflag.FlagSet) {
	flags.Visit(func(flag *pflag.Flag) {
		if _, isConnection := flag.Annotations[connectionAnnotation]; isConnection {
			o.repeated = append(o.repeated, flag)
		}
	})
}

// connectionAnnotation is the annotation of the flags that select a cluster or a namespace.
const connectionAnnotation = "connection"

var ownCommand = regexp.MustCompile("`" + ProgramName + " ([^`]*)`")

// Named returns a message in which the commands in backquotes are what users type: with the name of the program and the
// flags that select the cluster and the namespace.
func (o *Options) Named(message string) string {
	return ownCommand.ReplaceAllStringFunc(message, func(quoted string) string {
		command := cmp.Or(o.Program, ProgramName) + " " + ownCommand.FindStringSubmatch(quoted)[1]

		for _, flag := range o.repeated {
			if !strings.Contains(command, " --"+flag.Name) {
				command += Repeated(flag)
			}
		}

		return "`" + command + "`"
	})
}

// Repeated returns a flag as it is typed.
func Repeated(flag *pflag.Flag) string {
	return " --" + flag.Name + " " + view.Quote(flag.Value.String())
}

// Warnf writes a warning to the error stream.
func (o *Options) Warnf(format string, args ...any) {
	fmt.Fprintln(o.ErrOut, "Warning: "+Text(o.Named(fmt.Sprintf(format, args...))))
}

// Printf writes a line to the output.
func (o *Options) Printf(format string, args ...any) {
	fmt.Fprintln(o.Out, Text(o.Named(fmt.Sprintf(format, args...))))
}

// Confirm asks a question, and returns an error unless the answer is yes.
func (o *Options) Confirm(ctx context.Context, question string) error {
	if Width(o.In) == 0 {
		return errors.New("nothing was changed, because the input is no terminal to ask on; repeat the command with --yes")
	}

	fmt.Fprint(o.Out, Text(question)+" [y/N] ")

	answer := make(chan string, 1)

	go func() {
		line, _ := bufio.NewReader(o.In).ReadString('\n') // the end of the input is no answer
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()

	select {
	case <-ctx.Done():
	case given := <-answer:
		if given == "y" || given == "yes" {
			return nil
		}
	}

	return errors.New("nothing was changed")
}

// ExitFindings is the exit code of a command that has done its work and found something. That of a command which could
// not do its work is 1.
const ExitFindings = 2

// ExitError makes the program exit with a code of its own, and without a message unless it has an error.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}

	return fmt.Sprintf("exit code %d", e.Code)
}

// Run adapts a command's run function to cobra.
func Run(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) }
}

// Arguments checks that a command gets between least and most arguments; a negative most means any
// number. The error names what is expected and shows the usage.
func Arguments(least, most int, expected string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return UsageError(cmd, expected)
		}

		return nil
	}
}

// maxTypos is by how many characters a word may differ from the one that it may mean: cobra's default for the program.
const maxTypos = 2

// RefuseUnknown makes a command that only has subcommands refuse the name of another one, instead of showing its help
// as if that were meant.
func RefuseUnknown(cmd *cobra.Command) {
	cmd.Args, cmd.SuggestionsMinimumDistance = cobra.ArbitraryArgs, maxTypos
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}

		meant := ""
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			meant = "did you mean " + strings.Join(similar, " or ") + "? "
		}

		return fmt.Errorf("unknown command %q for %q; %s`%[2]s --help` lists the commands", args[0], cmd.CommandPath(), meant)
	}
}

// flagForms says what values of flags look like, by the name of their type.
var flagForms = map[string]string{
	"bool":     "true or false",
	"duration": "a duration such as 90s or 5m",
	"int":      "a whole number",
	"uint16":   "a whole number up to 65535",
}

// FlagError returns the error of a command for a flag.
func FlagError(cmd *cobra.Command, err error) error {
	invalid := new(pflag.InvalidValueError)
	if errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		if form := flagForms[flag.Value.Type()]; form != "" {
			err = fmt.Errorf("--%s is %q; set it to %s", flag.Name, invalid.GetValue(), form)
		}
	}

	return fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())
}

// valuesAnnotation is the annotation of a flag with the values that it can have, for completion in shells.
const valuesAnnotation = "values"

// SetValues tells which values a flag can have.
func SetValues(flags *pflag.FlagSet, name string, values ...string) {
	_ = flags.SetAnnotation(name, valuesAnnotation, values) // fails only for flags that do not exist
}

// UsageError names the expected arguments and shows how the command is used.
func UsageError(cmd *cobra.Command, expected string) error {
	return errors.New("expected " + expected + "; usage: " + cmd.UseLine())
}
