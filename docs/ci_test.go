package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// job is what a job of a CI runs: shell scripts in the provider's checkout, with variables.
type job struct {
	variables map[string]string
	scripts   []string
}

// githubJobs returns the jobs of the workflow for GitHub. Each step has a shell of its own.
func githubJobs(t *testing.T) map[string]job {
	var w struct {
		Env  map[string]string
		Jobs map[string]struct {
			Env   map[string]string
			Steps []struct{ Run string }
		}
	}

	unmarshal(t, "ci/github.yaml", &w)

	jobs := map[string]job{}

	for name, j := range w.Jobs {
		run := job{variables: maps.Clone(w.Env)}
		maps.Copy(run.variables, j.Env)

		for _, step := range j.Steps {
			run.scripts = append(run.scripts, step.Run)
		}

		jobs[name] = run
	}

	return jobs
}

// gitlabJobs returns the jobs of the template for GitLab. All lines of a job have one shell.
func gitlabJobs(t *testing.T) map[string]job {
	var template map[string]struct {
		Script    []string
		Variables map[string]string
	}

	var global struct{ Variables map[string]string }

	unmarshal(t, "ci/gitlab.yaml", &global)

	data, err := os.ReadFile("ci/gitlab.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	_, jobsOnly, _ := strings.Cut(string(data), "\nlint:")
	NewWithT(t).Expect(yaml.Unmarshal([]byte("lint:"+jobsOnly), &template)).To(Succeed())

	jobs := map[string]job{}

	for name, j := range template {
		run := job{variables: maps.Clone(global.Variables), scripts: []string{strings.Join(j.Script, "\n")}}
		maps.Copy(run.variables, j.Variables)

		// The caches of this machine save minutes.
		delete(run.variables, "GOCACHE")
		delete(run.variables, "GOMODCACHE")

		jobs[name] = run
	}

	return jobs
}

func unmarshal(t *testing.T, file string, into any) {
	t.Helper()

	data, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(yaml.Unmarshal(data, into)).To(Succeed())
}

// TestCI runs the jobs that check a release in a CI, in the checkout of a provider that conforms, and of one that does
// not. Only what is downloaded comes from this checkout.
func TestCI(t *testing.T) {
	for system, jobs := range map[string]map[string]job{"github": githubJobs(t), "gitlab": gitlabJobs(t)} {
		t.Run(system, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(jobs).To(And(HaveLen(2), HaveKey("lint"), HaveKey("install")))

			g.Expect(runJob(t, jobs["lint"], "")).To(Succeed())
			g.Expect(runJob(t, jobs["lint"], "clusterclass.yaml")).To(MatchError("exit status 2"))
		})
	}

	// The jobs of both systems differ only in caches, so one of them is enough.
	github, gitlab := githubJobs(t)["install"], gitlabJobs(t)["install"]
	g := NewWithT(t)
	g.Expect(strings.Fields(strings.Join(github.scripts, " "))).To(Equal(strings.Fields(gitlab.scripts[0])))
	g.Expect(github.variables).To(Equal(gitlab.variables))
	g.Expect(runJob(t, github, "")).To(Succeed())
}

// runJob runs a job. The provider's release has one more file if it is named.
func runJob(t *testing.T, j job, more string) error {
	t.Helper()

	g := NewWithT(t)
	checkout, programs := t.TempDir(), t.TempDir()
	abs, err := filepath.Abs(root)
	g.Expect(err).NotTo(HaveOccurred())

	write := func(file, text string) {
		g.Expect(os.WriteFile(file, []byte(text), 0o755)).To(Succeed())
	}

	release := "\tmkdir -p out/infrastructure-example\n\tcp -r " +
		filepath.Join(abs, "test/conformance/testdata/infrastructure-example/v1.1.0") + " out/infrastructure-example/\n"
	if more != "" {
		release += "\ttouch out/infrastructure-example/v1.1.0/" + more + "\n"
	}

	write(filepath.Join(checkout, "Makefile"), "release-manifests:\n"+release)
	write(filepath.Join(programs, "curl"), `#!/bin/sh
case "$2" in
https://github.com/capstan-project/capstan/releases/download/v*/capstan_linux_amd64.tar.gz)
  tar -c -C `+filepath.Dir(program(t, "capstan"))+` capstan | gzip -1 ;;
*) exit 22 ;;
esac
`)

	git, err := exec.LookPath("git")
	g.Expect(err).NotTo(HaveOccurred())
	write(filepath.Join(programs, "git"), `#!/bin/sh
case "$*" in
clone*https://github.com/capstan-project/capstan\ .capstan) ln -s `+abs+` .capstan ;;
*) exec `+git+` "$@" ;;
esac
`)

	for _, script := range j.scripts {
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
		cmd.Dir = checkout

		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
		for name, value := range j.variables {
			cmd.Env = append(cmd.Env, name+"="+value)
		}

		out, err := cmd.CombinedOutput()
		t.Logf("%s\n%s", script, out)

		if err != nil {
			return err
		}
	}

	return nil
}
