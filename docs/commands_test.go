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

// programs is a folder with the project's own programs, built once; TestMain removes it.
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

// usage is what the help of one command tells.
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

// walk collects the usage of all commands, by their names.
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

// ofOthers are flags that pages name without their program: kubectl's and the providers' managers'.
var ofOthers = []string{"--exec", "--force-conflicts", "--feature-gates"}

// TestCommandsExist looks for every command of capstan that a page names, in text or in a block,
// and for every flag of the project's programs.
func TestCommandsExist(t *testing.T) {
	known := walk(t.Context(), t, program(t, "capstan"))

	flags := slices.Concat(ofOthers, help(t.Context(), t, program(t, "operator")).flags)
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
			} else if match := regexp.MustCompile(`^--[a-z][a-z0-9-]*`).FindString(text); match != "" && !slices.Contains(flags, match) {
				t.Errorf("%s: no program of the project has the flag %s", page, match)
			}
		}
	}

	NewWithT(t).Expect(count).To(BeNumerically(">", 20))
}

// code is what a page has as code: its spans in the text, and its commands in blocks, each in one
// piece.
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

func checkCommand(t *testing.T, page string, known map[string]usage, words []string) {
	t.Helper()

	var command []string
	for len(words) > 0 && slices.Contains(known[strings.Join(command, " ")].commands, words[0]) {
		command, words = append(command, words[0]), words[1:]
	}

	name := strings.Join(command, " ")
	// Some commands with commands below them, such as crds, do something by themselves.
	if name == "" || len(known[name].commands) > 0 && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		t.Errorf("%s: there is no command capstan %s", page, strings.Join(append(command, words...), " "))
		return
	}

	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if word == "|" {
			return // what follows is another program's
		}

		if len(flag) > 1 && strings.HasPrefix(flag, "-") && !slices.Contains(known[name].flags, flag) {
			t.Errorf("%s: capstan %s has no flag %s", page, name, flag)
		}
	}
}
