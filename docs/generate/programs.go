package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const cliHead = notice + `# capstan

The command line. If it is installed as ~kubectl-capstan~ in the PATH, it is also a kubectl plugin: ~kubectl capstan~.

## Common flags

Several commands have these flags. Commands that connect to the management cluster also have kubectl's connection flags,
such as ~--kubeconfig~, ~--context~ and ~--as~, which are not listed.

`

// leastShared is how many commands have a common flag at least.
const leastShared = 2

// command is the help of a command without subcommands.
type command struct {
	name string
	// text is the help up to the flags.
	text  string
	flags []flag
}

// flag is how the help shows a flag: "  -o, --output string" and its usage.
type flag struct{ names, usage string }

func (f flag) long() string { return longName.FindString(f.names) }

// cliPage returns the help of all commands, with one section for each.
func cliPage(program string) ([]byte, error) {
	commands, err := leafCommands(program, nil)
	if err != nil {
		return nil, err
	}

	common, isCommon := commonFlags(commands)

	var out bytes.Buffer
	out.WriteString(strings.ReplaceAll(cliHead, "~", "`"))
	fmt.Fprintf(&out, "```text\n%s```\n", list(common))

	for _, c := range commands {
		var own []flag

		var names []string

		for _, f := range c.flags {
			if isCommon[f] {
				names = append(names, "`"+f.long()+"`")
			} else {
				own = append(own, f)
			}
		}

		fmt.Fprintf(&out, "\n## %s\n\n```text\n%s", c.name, c.text)

		if len(own) > 0 {
			fmt.Fprintf(&out, "\nFlags:\n%s", list(own))
		}

		out.WriteString("```\n")

		if len(names) > 0 {
			fmt.Fprintf(&out, "\nCommon flags: %s\n", strings.Join(names, ", "))
		}
	}

	return out.Bytes(), nil
}

var (
	// listed matches the lists of commands in the help of a command that has some, and listedCommand one of them.
	listed        = regexp.MustCompile(`(?ms) COMMAND$(.*?)^Flags:$`)
	listedCommand = regexp.MustCompile(`(?m)^  ([a-z]+) `)

	// flagLine matches a flag in the help.
	flagLine = regexp.MustCompile(`(?m)^( +(?:-\w, )?--\S+(?: \w+)?) +(\S.*)$`)
	longName = regexp.MustCompile(`--\S+`)
)

// leafCommands returns the subcommands of a command at all levels, or, if there are none, the command itself.
func leafCommands(program string, words []string) ([]command, error) {
	help, err := exec.Command(program, append(words, "--help")...).Output()
	if err != nil {
		return nil, fmt.Errorf("capstan %s --help: %w", strings.Join(words, " "), err)
	}

	group := listed.FindSubmatch(help)
	if group == nil {
		return []command{parse(strings.Join(words, " "), string(help))}, nil
	}

	var all []command

	for _, found := range listedCommand.FindAllStringSubmatch(string(group[1]), -1) {
		name := found[1]
		if name == "help" || name == "completion" {
			continue
		}

		commands, err := leafCommands(program, append(words[:len(words):len(words)], name))
		if err != nil {
			return nil, err
		}

		all = append(all, commands...)
	}

	return all, nil
}

// unlisted are flags that need no description in each section.
var unlisted = []string{"--help", "--kubeconfig", "--context"}

// parse returns the parts of a command's help.
func parse(words, help string) command {
	text, flags, _ := strings.Cut(help, "\nFlags:\n")
	c := command{name: "capstan " + words, text: text}

	for _, found := range flagLine.FindAllStringSubmatch(flags, -1) {
		if f := (flag{found[1], found[2]}); !slices.Contains(unlisted, f.long()) {
			c.flags = append(c.flags, f)
		}
	}

	return c
}

// commonFlags returns the flags that several commands have, sorted by name, and as a set.
func commonFlags(commands []command) ([]flag, map[flag]bool) {
	count := map[flag]int{}
	common := map[flag]bool{}

	for _, c := range commands {
		for _, f := range c.flags {
			count[f]++
			if count[f] == leastShared {
				common[f] = true
			}
		}
	}

	byName := func(a, b flag) int {
		return cmp.Or(strings.Compare(a.long(), b.long()), strings.Compare(a.usage, b.usage))
	}

	return slices.SortedFunc(maps.Keys(common), byName), common
}

// list returns flags with their usages in a column.
func list(flags []flag) string {
	width := 0
	for _, f := range flags {
		width = max(width, len(f.names))
	}

	var out strings.Builder
	for _, f := range flags {
		fmt.Fprintf(&out, "%-*s   %s\n", width, f.names, f.usage)
	}

	return out.String()
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
