package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

const cliHead = notice + `# capstan

The command line. As ` + "`kubectl-capstan`" + ` in the PATH it is a kubectl plugin too: ` + "`kubectl capstan`" + `.

Commands that talk to the management cluster also take kubectl's flags for that, such as ` + "`--kubeconfig`, `--context` and `--as`" + `; they
are left out below.

`

// cliPage is the help of all commands, one section each.
func cliPage(program string) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(cliHead)

	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(false).AddFlags(connection)
	err := document(&out, program, nil, connection)

	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), err
}

var listed = regexp.MustCompile(`(?ms)^Available Commands:\n(.*?)\n\n`)

// document writes the section of a command that does something, and those of the commands below it.
func document(out *bytes.Buffer, program string, command []string, connection *pflag.FlagSet) error {
	help, err := exec.Command(program, append(command, "--help")...).Output() //nolint:gosec // programs just built
	if err != nil {
		return fmt.Errorf("capstan %s --help: %w", strings.Join(command, " "), err)
	}

	group := listed.FindSubmatch(help)
	if group == nil {
		fmt.Fprintf(
			out,
			"## capstan %s\n\n```text\n%s```\n\n",
			strings.Join(command, " "),
			withoutConnection(string(help), connection),
		)

		return nil
	}

	for line := range strings.Lines(string(group[1])) {
		name := strings.Fields(line)[0]
		if name == "help" || name == "completion" {
			continue
		}

		if err := document(out, program, append(command[:len(command):len(command)], name), connection); err != nil {
			return err
		}
	}

	return nil
}

var flagLine = regexp.MustCompile(`^ +(?:-\w, )?--([a-z0-9-]+)`)

// withoutConnection drops the lines of flags with which kubectl connects, unless the command says
// something of its own about them.
func withoutConnection(help string, connection *pflag.FlagSet) string {
	var kept strings.Builder

	for line := range strings.Lines(help) {
		if match := flagLine.FindStringSubmatch(line); match != nil {
			if known := connection.Lookup(match[1]); known != nil && strings.Contains(line, known.Usage) {
				continue
			}
		}

		kept.WriteString(line)
	}

	return kept.String()
}

const operatorHead = notice + `# Flags of the operator

The chart sets them by its values, see [its README](../../charts/capstan/README.md).

`

// operatorPage is the help of the operator.
func operatorPage(program string) ([]byte, error) {
	help, err := exec.Command(program, "--help").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("operator --help: %w", err)
	}

	_, flags, _ := strings.Cut(string(help), "\n")

	return []byte(operatorHead + "```text\n" + flags + "```\n"), nil
}
