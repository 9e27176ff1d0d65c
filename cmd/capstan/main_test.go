package main

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

const sampleProviders = "../../test/data/providers"

// runMain runs the program in a separate process.
func runMain(t *testing.T, args ...string) (exitCode int, stdout, stderr string) {
	t.Helper()

	cmd := program(t, args...)

	var out, errs bytes.Buffer

	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		exit := new(exec.ExitError)
		NewWithT(t).Expect(errors.As(err, &exit)).To(BeTrue(), "%v", err)
		exitCode = exit.ExitCode()
	}

	return exitCode, out.String(), errs.String()
}

// program returns the program in a separate process: this test binary.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()

	executable, err := os.Executable()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(t.Context(), executable, "-test.run=^TestMainProcess$")

	cmd.Env = append(os.Environ(), "CAPSTAN_ARGS="+strings.Join(args, "\n"))

	return cmd
}

// TestMainProcess is not a test. It is the program in the process that runMain starts.
func TestMainProcess(t *testing.T) {
	args, ok := os.LookupEnv("CAPSTAN_ARGS")
	if !ok {
		t.Skip("only for runMain")
	}

	os.Args = append([]string{cmp.Or(os.Getenv("CAPSTAN_NAME"), "capstan")}, strings.Split(args, "\n")...)

	main()
}

func TestLintExitCodes(t *testing.T) {
	sound := filepath.Join(sampleProviders, "cluster-api")

	for _, c := range []struct {
		name     string
		args     []string
		exitCode int
		stdout   string
		stderr   string
	}{
		{"sound", []string{sound}, 0, "no findings", ""},
		{"sound, by version", []string{sound + "/v1.0.0", "--fail-on", "warning"}, 0, "no findings", ""},
		{
			"an error",
			[]string{clitest.BrokenProvider(t, sampleProviders, "error")},
			2,
			"error references/webhook-service",
			"does not conform to the contracts\n",
		},
		{"a warning", []string{clitest.BrokenProvider(t, sampleProviders, "warning")}, 0, "1 warning", ""},
		{
			"a warning that counts",
			[]string{clitest.BrokenProvider(t, sampleProviders, "warning"), "--fail-on", "warning"},
			2,
			"1 warning",
			"does not conform to the contracts\n",
		},
		{
			"an error as JSON",
			[]string{clitest.BrokenProvider(t, sampleProviders, "error"), "-o", "json"},
			2,
			`"errors": `,
			"",
		},
		{"an unknown format", []string{sound, "-o", "xml"}, 1, "", "unknown --output \"xml\""},
		{"an unknown level", []string{sound, "--fail-on", "info"}, 1, "", "unknown --fail-on \"info\""},
		{"no folder", nil, 1, "", "expected folders, archives of charts, addresses or providers; usage: capstan lint {"},
		{"a missing version", []string{sound + "/v9.0.0"}, 1, "", "version v9.0.0 is not available"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			exitCode, stdout, stderr := runMain(t, append([]string{"lint"}, c.args...)...)
			g.Expect(exitCode).To(Equal(c.exitCode), stderr)
			g.Expect(stdout).To(ContainSubstring(c.stdout))
			g.Expect(stderr).To(ContainSubstring(c.stderr))
		})
	}
}

// TestMisspelt: a command that does not exist fails also below another one, and values of flags are explained without
// the words of Go.
func TestMisspelt(t *testing.T) {
	for args, want := range map[string]string{
		"upgrade aply":       `unknown command "aply" for "capstan upgrade"; did you mean apply? `,
		"chart biuld x":      `unknown command "biuld" for "capstan chart"; did you mean build? `,
		"completion bsh":     `unknown command "bsh" for "capstan completion"; did you mean bash`,
		"help staus":         `unknown command "staus" for "capstan"`,
		"status --wait=yes!": "--wait is \"yes!\"; set it to true or false; `capstan status --help`",
		"reconcile x --timeout 5": "--timeout is \"5\"; set it to a duration such as 90s or 5m; `capstan " +
			"reconcile --help`",
		"ui --port x": `--port is "x"; set it to a whole number`,
	} {
		exitCode, _, stderr := runMain(t, strings.Fields(args)...)
		NewWithT(t).Expect(exitCode).To(Equal(1), args)
		NewWithT(t).Expect(stderr).To(HavePrefix("Error: "+want), args)
	}

	exitCode, help, _ := runMain(t, "upgrade")
	NewWithT(t).Expect(exitCode).To(BeZero())
	NewWithT(t).Expect(help).To(ContainSubstring("Usage:\n  capstan upgrade COMMAND\n"))
}

// unreachable makes a kubeconfig the user's own whose API server does not listen, and returns its path.
func unreachable(t *testing.T) string {
	t.Helper()
	clitest.WithoutConfiguration(t)

	file := filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: one, context: {cluster: c}}]
`), 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", file)

	return file
}

// TestUnreachable: all commands say the same if nothing listens where the API server should.
func TestUnreachable(t *testing.T) {
	file := unreachable(t)

	for _, args := range []string{
		"status", "status --wait", "audit", "adopt", "init", "uninstall", "mirror --installed --dry-run",
	} {
		exitCode, _, stderr := runMain(t, strings.Fields(args)...)
		NewWithT(t).Expect(exitCode).To(Equal(1), args)
		NewWithT(t).Expect(stderr).To(Equal("Error: the API server http://127.0.0.1:1 does not answer: dial tcp "+
			"127.0.0.1:1: connect: connection refused; check that it runs, and that context one of "+file+" is right, or "+
			"select another cluster with --kubeconfig or --context\n"), args)
	}
}

// TestMissingFiles: the error for a file that a flag or an argument names says what to correct.
func TestMissingFiles(t *testing.T) {
	unreachable(t)

	const fix = " cannot be read: no such file or directory; correct its path or its permissions\n"

	for args, want := range map[string]string{
		"diff -f none.yaml":                                "none.yaml" + fix,
		"permissions -f none.yaml":                         "none.yaml" + fix,
		"mirror -f none.yaml --dry-run":                    "none.yaml" + fix,
		"mirror --archive none.tar --dry-run":              "none.tar" + fix,
		"mirror aws --config none.yaml --dry-run":          "aws: configuration file none.yaml" + fix,
		"providers --config none.yaml":                     "configuration file none.yaml" + fix,
		"chart build folder/none.tgz":                      "folder/none.tgz" + fix,
		"lint folder/none.tgz":                             "folder/none.tgz" + fix,
		"mirror aws --registry-config none.json --dry-run": "--registry-config: none.json" + fix,
		"mirror aws --registry-ca none.crt --to oci://a.b": "--registry-ca: none.crt" + fix,
	} {
		exitCode, _, stderr := runMain(t, strings.Fields(args)...)
		NewWithT(t).Expect(exitCode).To(Equal(1), args)
		NewWithT(t).Expect(stderr).To(HaveSuffix("Error: "+want), args)
	}
}

// Shells call the program like this; the last line is a directive for them.
func TestCompletion(t *testing.T) {
	clitest.WithoutConfiguration(t)

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"status", "--output", ""}, "table\njson\nyaml\ntree\nwide\nname\n:4\n"},
		{[]string{"lint", "--fail-on", ""}, "error\nwarning\n:4\n"},
		{[]string{"providers", ""}, "\ninfrastructure-aws\thttps://"},
		{[]string{"delete", ""}, ":4\n"}, // there is no cluster
	} {
		exitCode, stdout, _ := runMain(t, append([]string{"__complete"}, c.args...)...)
		NewWithT(t).Expect(exitCode).To(BeZero())
		NewWithT(t).Expect(stdout).To(ContainSubstring(c.want), "%v", c.args)
	}
}

// TestHelpWidth checks that the help of all commands fits into a terminal with 80 columns. URLs cannot be broken.
func TestHelpWidth(t *testing.T) {
	const nameColumn = "              "

	var check func(*cobra.Command)

	check = func(cmd *cobra.Command) {
		for line := range strings.Lines(nameColumn + cmd.Short + "\n" + cmd.Long + "\n" + cmd.Example) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > 80 && !strings.Contains(line, "https://") {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len(line), line)
			}
		}

		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}

	check(newRootCommand(&cli.Options{Program: cli.ProgramName}))
}

func TestNameInHelp(t *testing.T) {
	for program, name := range map[string]string{
		"capstan":                            "capstan",
		"/usr/local/bin/capstan":             "capstan",
		"/home/me/.krew/bin/kubectl-capstan": "kubectl capstan",
		"kubectl-capstan.exe":                "kubectl capstan",
	} {
		t.Run(program, func(t *testing.T) {
			g := NewWithT(t)

			t.Setenv("CAPSTAN_NAME", program)

			_, help, _ := runMain(t, "upgrade", "apply", "--help")
			g.Expect(help).To(And(
				ContainSubstring("\nUsage:\n  "+name+" upgrade apply {PROVIDER:VERSION"),
				HavePrefix("Upgrade providers.\n\n  "+name+" upgrade apply --contract v1beta2\n  "+name+" upgrade apply cluster"),
				ContainSubstring(`"`+name+` upgrade plan"`),
			))

			_, _, failure := runMain(t, "history")
			g.Expect(failure).To(ContainSubstring("usage: " + name + " history PROVIDER"))

			_, _, failure = runMain(t, "chart", "build", sampleProviders, "--source", "none")
			g.Expect(failure).To(HaveSuffix("; `" + name + " chart build --help` lists the flags\n"))

			_, _, failure = runMain(t, "providers", "none")
			g.Expect(failure).To(ContainSubstring("`" + name + " providers` lists the known ones"))

			broken := clitest.BrokenProvider(t, sampleProviders, "warning")
			_, _, warning := runMain(t, "chart", "build", broken, "--destination", t.TempDir())
			g.Expect(warning).To(HaveSuffix("`" + name + " lint " + broken + "` shows the details.\n"))
		})
	}
}
