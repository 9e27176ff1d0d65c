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
	output   *OutputFlags
	failOn   string
	baseline string
}

// AddFindingsFlags adds --output, --color, --fail-on and --baseline to a command.
func AddFindingsFlags(flags *pflag.FlagSet) *FindingsFlags {
	f := &FindingsFlags{output: AddOutputFlags(flags, "sarif", "github")}
	flags.StringVar(
		&f.failOn,
		"fail-on",
		string(lint.Error),
		"Least level of findings that are a failure: error, warning.",
	)
	SetValues(flags, "fail-on", string(lint.Error), string(lint.Warning))
	flags.StringVar(
		&f.baseline,
		"baseline",
		"",
		"File with the findings of an earlier run, from --output json or yaml, which do not count again.",
	)

	return f
}

// Report prints the findings of a command.
type Report struct {
	printer  *Printer
	rules    []lint.Rule
	failOn   lint.Level
	baseline []lint.Acceptance
}

// Report returns the report of a command that checks all of the rules. It is an error if the flags
// have unknown values.
func (f *FindingsFlags) Report(out io.Writer, rules []lint.Rule) (*Report, error) {
	r := &Report{rules: rules}

	var err error
	if r.failOn, err = lint.ParseFailOn(f.failOn); err != nil {
		return nil, err
	}

	if f.baseline != "" {
		if r.baseline, err = lint.ReadBaseline(f.baseline); err != nil {
			return nil, err
		}
	}

	r.printer, err = f.output.Printer(out)

	return r, err
}

// Print prints the findings about a subject, such as a folder. It returns an error with the exit code 2 if there is one
// of the level of --fail-on, or of a worse one, that is not accepted.
func (r *Report) Print(subject string, findings []lint.Finding) error {
	lint.Accept(findings, r.baseline)

	if err := r.write(findings); err != nil {
		return err
	}

	if lint.Fail(findings, r.failOn) {
		err := fmt.Errorf("%s does not conform to the contracts: %s", subject, lint.Summary(findings))

		return &ExitError{Code: ExitFindings, Err: err}
	}

	return nil
}

// write prints findings in one of lint's formats, or as YAML.
func (r *Report) write(findings []lint.Finding) error {
	switch r.printer.Format {
	case FormatTable:
		return r.writeText("text", findings)
	case "github":
		return r.writeText(r.printer.Format, findings)
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

// writeText prints findings in one of lint's formats for people.
func (r *Report) writeText(format string, findings []lint.Finding) error {
	var text bytes.Buffer
	if err := lint.Write(&text, format, r.rules, findings); err != nil {
		return err
	}

	_, err := io.WriteString(r.printer, Text(text.String()))

	return err
}
