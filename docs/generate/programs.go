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

The command line. If it is installed as ~kubectl-capstan~ in the PATH, it is also a kubectl plugin: ~kubectl capstan~.

Commands that connect to the management cluster also accept kubectl's connection flags, such as ~--kubeconfig~,
~--context~ and ~--as~, which are not listed below.

`

// cliPage returns the help of all commands, with one section for each.
func cliPage(program string) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(strings.ReplaceAll(cliHead, "~", "`"))

	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(false).AddFlags(connection)
	err := document(&out, program, nil, connection)

	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), err
}

var (
	// listed matches the lists of commands in the help of a command that has some, and listedCommand one of them.
	listed        = regexp.MustCompile(`(?ms) COMMAND$(.*?)^Flags:$`)
	listedCommand = regexp.MustCompile(`(?m)^  ([a-z]+) `)
)

// document writes the sections of a command's subcommands, or, if there are none, its own section.
func document(out *bytes.Buffer, program string, command []string, connection *pflag.FlagSet) error {
	help, err := exec.Command(program, append(command, "--help")...).Output()
	if err != nil {
		return fmt.Errorf("capstan %s --help: %w", strings.Join(command, " "), err)
	}

	group := listed.FindSubmatch(help)
	if group == nil {
		text := withoutConnection(string(help), connection)
		fmt.Fprintf(out, "## capstan %s\n\n```text\n%s```\n\n", strings.Join(command, " "), text)

		return nil
	}

	for _, found := range listedCommand.FindAllStringSubmatch(string(group[1]), -1) {
		name := found[1]
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

// otherFlags is how the help mentions the flags that it does not list.
const otherFlags = "\n" +
	"kubectl's other flags for the connection, such as --as, --server and --token, can be used as well.\n"

// withoutConnection removes the lines about kubectl's connection flags from the help, unless the
// command describes them itself.
func withoutConnection(help string, connection *pflag.FlagSet) string {
	var kept strings.Builder

	for line := range strings.Lines(strings.Replace(help, otherFlags, "", 1)) {
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

The chart sets the flags from its values, see [its README](../../charts/capstan/README.md).

`

// operatorPage returns the help of the operator.
func operatorPage(program string) ([]byte, error) {
	help, err := exec.Command(program, "--help").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("operator --help: %w", err)
	}

	_, flags, _ := strings.Cut(string(help), "\n")

	return []byte(operatorHead + "```text\n" + flags + "```\n"), nil
}
