package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// programs builds the project's programs once and returns their folder. TestMain removes it.
var programs = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "capstan-docs-test-")
	if err != nil {
		return "", err
	}

	remove = func() error { return os.RemoveAll(folder) }
	build := exec.Command("go", "build", "-o", folder, "./cmd/...")
	build.Dir = root
	build.Stderr = os.Stderr

	return folder, build.Run()
})

// remove deletes the programs if there are any.
var remove = func() error { return nil }

func program(t *testing.T, name string) string {
	t.Helper()

	folder, err := programs()
	if err != nil {
		t.Fatal(err)
	}

	return filepath.Join(folder, name)
}

// usage is the parsed help of a command.
type usage struct {
	help     string
	commands []string
	flags    []string
}

var (
	flagInHelp    = regexp.MustCompile(`(?m)^ +(?:(-\w), )?(--[a-z0-9-]+)`)
	commandInHelp = regexp.MustCompile(`(?m)^  ([a-z]+) `)
)

func help(ctx context.Context, t *testing.T, program string, command ...string) usage {
	t.Helper()

	out, err := exec.CommandContext(ctx, program, append(command, "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s --help: %s", program, strings.Join(command, " "), err)
	}

	u := usage{help: string(out)}
	if _, group, found := strings.Cut(u.help, "Available Commands:\n"); found {
		group, _, _ = strings.Cut(group, "\n\n")
		for _, match := range commandInHelp.FindAllStringSubmatch(group, -1) {
			u.commands = append(u.commands, match[1])
		}
	}

	for _, match := range flagInHelp.FindAllStringSubmatch(u.help, -1) {
		u.flags = append(u.flags, match[2])
		if match[1] != "" {
			u.flags = append(u.flags, match[1])
		}
	}

	return u
}

// walk returns the usage of a command and all its subcommands, by name.
func walk(ctx context.Context, t *testing.T, program string, command ...string) map[string]usage {
	t.Helper()
	own := help(ctx, t, program, command...)

	all := map[string]usage{strings.Join(command, " "): own}
	for _, name := range own.commands {
		for path, u := range walk(ctx, t, program, append(command[:len(command):len(command)], name)...) {
			all[path] = u
		}
	}

	return all
}

// otherFlags are flags of other programs, such as kubectl, that pages mention without the program.
var otherFlags = []string{"--exec", "--force-conflicts", "--feature-gates"}

var leadingFlag = regexp.MustCompile(`^--[a-z][a-z0-9-]*`)

// TestCommands checks that all capstan commands and all flags on the pages exist.
func TestCommands(t *testing.T) {
	known := walk(t.Context(), t, program(t, "capstan"))

	flags := slices.Concat(otherFlags, help(t.Context(), t, program(t, "operator")).flags)
	for _, u := range known {
		flags = append(flags, u.flags...)
	}

	count := 0

	for page, content := range pages(t) {
		if strings.HasPrefix(page, "docs/reference/") || strings.HasPrefix(page, "docs/decisions/") ||
			strings.HasPrefix(page, "test/") {
			continue
		}

		for _, text := range code(page, content) {
			if line, found := strings.CutPrefix(text, "capstan "); found {
				count++

				checkCommand(t, page, known, strings.Fields(line))
			} else if flag := leadingFlag.FindString(text); flag != "" && !slices.Contains(flags, flag) {
				t.Errorf("%s: no program of the project has the flag %s", page, flag)
			}
		}
	}

	NewWithT(t).Expect(count).To(BeNumerically(">", 20))
}

// code returns the code on a page: inline code, and the commands in blocks, with continued lines
// joined.
func code(page, content string) []string {
	blocks, prose := split(page, content)

	var found []string
	for _, span := range codeSpan.FindAllString(strings.Join(prose, "\n"), -1) {
		found = append(found, strings.TrimSpace(strings.Trim(span, "`")))
	}

	for _, b := range blocks {
		if b.language == "sh" || b.language == "" {
			for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
				line, _, _ = strings.Cut(line, " #")
				found = append(found, strings.TrimPrefix(strings.TrimSpace(line), "go run ./cmd/"))
			}
		}
	}

	return found
}

// checkCommand reports an error if a command or one of its flags does not exist.
func checkCommand(t *testing.T, page string, known map[string]usage, words []string) {
	t.Helper()

	var command []string
	for len(words) > 0 && slices.Contains(known[strings.Join(command, " ")].commands, words[0]) {
		command, words = append(command, words[0]), words[1:]
	}

	name := strings.Join(command, " ")
	// Some commands that have subcommands, such as crds, can also be run themselves.
	if name == "" || len(known[name].commands) > 0 && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		t.Errorf("%s: there is no command capstan %s", page, strings.Join(append(command, words...), " "))
		return
	}

	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if word == "|" {
			return // the rest belongs to another program
		}

		if len(flag) > 1 && strings.HasPrefix(flag, "-") && !slices.Contains(known[name].flags, flag) {
			t.Errorf("%s: capstan %s has no flag %s", page, name, flag)
		}
	}
}
