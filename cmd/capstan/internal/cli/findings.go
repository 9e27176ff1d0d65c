package cli

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/lint"
)

// FindingsFlags are the flags of commands that check something against rules.
type FindingsFlags struct {
	output *OutputFlags
	failOn string
}

// AddFindingsFlags adds --output, --color and --fail-on to a command.
func AddFindingsFlags(flags *pflag.FlagSet) *FindingsFlags {
	f := &FindingsFlags{output: AddOutputFlags(flags, "sarif", "github")}
	flags.StringVar(
		&f.failOn,
		"fail-on",
		string(lint.Error),
		"Least level of findings that are a failure: error, warning.",
	)
	SetValues(flags, "fail-on", string(lint.Error), string(lint.Warning))

	return f
}

// Report prints the findings of a command.
type Report struct {
	printer *Printer
	rules   []lint.Rule
	failOn  []lint.Level
}

// Report returns the report of a command that checks all of the rules. It is an error if the flags
// have unknown values.
func (f *FindingsFlags) Report(out io.Writer, rules []lint.Rule) (*Report, error) {
	r := &Report{rules: rules}

	switch f.failOn {
	case string(lint.Error):
		r.failOn = []lint.Level{lint.Error}
	case string(lint.Warning):
		r.failOn = []lint.Level{lint.Error, lint.Warning}
	default:
		return nil, fmt.Errorf("unknown --fail-on %q; use error or warning", f.failOn)
	}

	var err error

	r.printer, err = f.output.Printer(out)

	return r, err
}

// Print prints the findings about a subject, such as a folder. It returns an error if there is one of
// the level of --fail-on, or of a worse one.
func (r *Report) Print(subject string, findings []lint.Finding) error {
	if err := r.write(findings); err != nil {
		return err
	}

	for _, level := range r.failOn {
		if lint.Count(findings, level) > 0 {
			return fmt.Errorf("%s does not conform to the contracts: %s", subject, lint.Summary(findings))
		}
	}

	return nil
}

// write prints findings in one of lint's formats, or as YAML.
func (r *Report) write(findings []lint.Finding) error {
	switch r.printer.Format {
	case FormatTable:
		return lint.Write(r.printer, "text", r.rules, findings)
	case FormatYAML:
		var data bytes.Buffer
		if err := lint.Write(&data, "json", r.rules, findings); err != nil {
			return err
		}

		text, err := yaml.JSONToYAML(data.Bytes())
		if err != nil {
			return err
		}

		_, err = r.printer.Write(text)

		return err
	}

	return lint.Write(r.printer, r.printer.Format, r.rules, findings)
}
