package cli

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/contract"
)

// FindingsFlags are the flags of commands that check something against rules.
type FindingsFlags struct {
	output *OutputFlags
	failOn string
}

// AddFindingsFlags adds --output, --color and --fail-on to a command.
func AddFindingsFlags(flags *pflag.FlagSet) *FindingsFlags {
	f := &FindingsFlags{output: AddOutputFlags(flags)}
	flags.StringVar(&f.failOn, "fail-on", string(contract.Error),
		"Lowest level of findings that are a failure: error, warning.")
	SetValues(flags, "fail-on", string(contract.Error), string(contract.Warning))

	return f
}

// Report prints the findings of a command.
type Report struct {
	printer *Printer
	failOn  contract.Level
}

// Report returns the report of a command. It is an error if the flags have unknown values.
func (f *FindingsFlags) Report(out io.Writer) (*Report, error) {
	failOn := contract.Level(f.failOn)
	if failOn != contract.Error && failOn != contract.Warning {
		return nil, fmt.Errorf("unknown --fail-on %q; use %s or %s", failOn, contract.Error, contract.Warning)
	}

	printer, err := f.output.Printer(out)

	return &Report{printer: printer, failOn: failOn}, err
}

// findings are what programs read.
type findings struct {
	Errors   int                `json:"errors"`
	Warnings int                `json:"warnings"`
	Infos    int                `json:"infos"`
	Findings []contract.Finding `json:"findings"`
}

// Print prints the findings about a subject, such as a folder. It returns an error with the exit code 2 if there is one
// of the level of --fail-on, or of a worse one.
func (r *Report) Print(subject string, all []contract.Finding) error {
	report := findings{
		Errors:   contract.Count(all, contract.Error),
		Warnings: contract.Count(all, contract.Warning),
		Infos:    contract.Count(all, contract.Info),
		Findings: append([]contract.Finding{}, all...), // an empty list is not null
	}

	err := r.printer.Print(report, func() error {
		_, err := io.WriteString(r.printer, Text(contract.Text(all)))
		return err
	})
	if err != nil {
		return err
	}

	if contract.Fail(all, r.failOn) { // their numbers are at the end of the output
		return &ExitError{Code: ExitFindings, Err: fmt.Errorf("%s does not conform to the contracts", subject)}
	}

	return nil
}
