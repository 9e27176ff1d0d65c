package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// TestImagesHaveTheSameProgram builds the operator as the Dockerfile does and as ko does, and compares the bytes.
func TestImagesHaveTheSameProgram(t *testing.T) {
	g := NewWithT(t)
	ko := koConfig(t)
	dockerfile := instructions(t)

	const version = "v1.2.3"

	ldflags := strings.ReplaceAll(ko.Builds[0].Ldflags[0], "{{.Env.VERSION}}", version)
	ours := build(t, ko.Builds[0].Env, "go build -ldflags='"+ldflags+"' -o $OUT "+ko.Builds[0].Main)

	env := []string{"TARGETOS=linux", "TARGETARCH=amd64", "VERSION=" + version, "PROGRAM=operator"}
	for _, variable := range dockerfile["ENV"] {
		env = append(env, strings.ReplaceAll(variable, `"`, ""))
	}

	var commands []string

	for _, run := range dockerfile["RUN"] {
		if _, command, found := strings.Cut(run, "GOOS="); found {
			commands = append(commands, "GOOS="+strings.Replace(command, "/out/program", "$OUT", 1))
		}
	}

	g.Expect(commands).To(HaveLen(1))
	g.Expect(build(t, env, commands[0])).To(Equal(ours), "change the flags of Dockerfile and .ko.yaml together")
}

// build runs a command for linux/amd64 at the root of the repository, and returns the program that it writes to $OUT.
func build(t *testing.T, env []string, command string) []byte {
	t.Helper()
	g := NewWithT(t)
	out := filepath.Join(t.TempDir(), "operator")

	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = root

	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "OUT="+out)
	cmd.Env = append(cmd.Env, env...)
	output, err := cmd.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))

	program, err := os.ReadFile(out)
	g.Expect(err).NotTo(HaveOccurred())

	return program
}

// TestImagesHaveTheSameBase checks that both ways to build the image use one base, and the Go version of go.mod.
func TestImagesHaveTheSameBase(t *testing.T) {
	g := NewWithT(t)
	pinned := regexp.MustCompile(`^(?:--platform=\$BUILDPLATFORM )?(\S+@sha256:[0-9a-f]{64})(?: AS build)?$`)

	var images []string

	for _, from := range instructions(t)["FROM"] {
		match := pinned.FindStringSubmatch(from)
		g.Expect(match).NotTo(BeNil(), "the image is not pinned by digest: FROM %s", from)
		images = append(images, match[1])
	}

	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	g.Expect(err).NotTo(HaveOccurred())
	module, err := modfile.Parse("go.mod", data, nil)
	g.Expect(err).NotTo(HaveOccurred())

	toolchain := strings.TrimPrefix(module.Toolchain.Name, "go")
	g.Expect(images).To(HaveExactElements(HavePrefix("golang:"+toolchain+"@"), koConfig(t).DefaultBaseImage),
		"Dockerfile, .ko.yaml and go.mod differ: update them together")
}

type ko struct {
	DefaultBaseImage string
	Builds           []struct {
		Main         string
		Env, Ldflags []string
	}
}

func koConfig(t *testing.T) ko {
	t.Helper()
	g := NewWithT(t)

	data, err := os.ReadFile(filepath.Join(root, ".ko.yaml"))
	g.Expect(err).NotTo(HaveOccurred())

	var config ko
	g.Expect(yaml.Unmarshal(data, &config)).To(Succeed())
	g.Expect(config.Builds).To(HaveLen(2))
	g.Expect(config.Builds[1].Main).To(Equal("./cmd/capstan"))
	g.Expect(config.Builds[1].Env).To(Equal(config.Builds[0].Env))
	g.Expect(config.Builds[1].Ldflags).To(Equal(config.Builds[0].Ldflags))

	return config
}

// instructions returns the arguments of the Dockerfile's instructions, by instruction and in their order.
func instructions(t *testing.T) map[string][]string {
	t.Helper()

	data, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	found := map[string][]string{}

	for line := range strings.Lines(strings.ReplaceAll(string(data), "\\\n", "")) {
		if name, arguments, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			found[name] = append(found[name], arguments)
		}
	}

	return found
}
