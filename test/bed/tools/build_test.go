package tools

import (
	"bytes"
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

const helloSource = `package main

var version, major, minor string

func main() { println(version, major, minor) }
`

// checkout returns a project with two small programs and a stream of manifests, each from a local
// module.
func checkout(t *testing.T) *Set {
	t.Helper()

	s := &Set{root: t.TempDir(), artifacts: []artifact{
		{
			name: "hello", pins: "hello", pkg: "example.org/hello",
			variables: []string{
				"main.version={version of example.org/hello}",
				"main.major={major of example.org/hello}",
				"main.minor={minor of example.org/hello}",
			},
		},
		{name: "other", pins: "other", pkg: "example.org/other"},
		{name: "all.yaml", pins: "other", module: "example.org/other", files: []string{"b/*.yaml", "a/*.yaml"}},
	}}
	for _, name := range []string{"hello", "other"} {
		pin(t, s, name, "v1.2.3")
		write(t, s, name+"/source/go.mod", "module example.org/"+name+"\n\ngo 1.26.0\n")
		write(t, s, name+"/source/main.go", helloSource)
	}

	write(t, s, "other/source/a/1.yaml", "---\na: 1\n")
	write(t, s, "other/source/b/2.yaml", "b: 2\n")
	write(t, s, "other/source/b/1.yaml", "b: 1\n\n")

	return s
}

func pin(t *testing.T, s *Set, name, version string) {
	t.Helper()

	module := "example.org/" + name
	write(
		t,
		s,
		name+"/go.mod",
		"module pins\n\ngo 1.26.0\n\nrequire "+module+" "+version+"\n\nreplace "+module+" => ./source\n",
	)
	write(t, s, name+"/go.sum", "")
}

func write(t *testing.T, s *Set, name, content string) {
	t.Helper()

	path := filepath.Join(s.root, "test", "bed", "tools", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// built returns the artifacts that a build has logged.
func built(log string) []string {
	var names []string

	for line := range strings.Lines(log) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "  ") {
			names = append(names, fields[0])
		}
	}

	return names
}

func TestBuild(t *testing.T) {
	g := NewWithT(t)
	s := checkout(t)
	hello := func() string {
		output, err := exec.Command(s.Program("hello")).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred())

		return strings.TrimSpace(string(output))
	}
	build := func() []string {
		var log bytes.Buffer
		g.Expect(s.Build(t.Context(), &log)).To(Succeed())

		return built(log.String())
	}

	g.Expect(build()).To(ConsistOf("hello", "other", "all.yaml"))
	g.Expect(hello()).To(Equal("v1.2.3 1 2"))
	g.Expect(os.ReadFile(s.Manifests("all.yaml"))).To(BeEquivalentTo("---\nb: 1\n---\nb: 2\n---\na: 1\n"))

	g.Expect(build()).To(BeEmpty(), "everything is up to date")

	pin(t, s, "hello", "v1.3.0")
	g.Expect(build()).To(ConsistOf("hello"), "only what has changed versions")
	g.Expect(hello()).To(Equal("v1.3.0 1 3"))

	g.Expect(os.Remove(s.Program("other"))).To(Succeed())
	g.Expect(build()).To(ConsistOf("other"), "only what is missing")
}

func TestBuildFails(t *testing.T) {
	g := NewWithT(t)
	s := checkout(t)

	var log bytes.Buffer
	g.Expect(s.Build(t.Context(), &log)).To(Succeed())
	before, err := os.ReadFile(s.Program("hello"))
	g.Expect(err).NotTo(HaveOccurred())

	pin(t, s, "hello", "v1.4.0")
	write(t, s, "hello/source/main.go", "package main\n\nfunc main() { undefinedFunction() }\n")
	err = s.Build(t.Context(), &log)
	g.Expect(err).To(MatchError(And(ContainSubstring("build hello"), ContainSubstring("undefined: undefinedFunction"))))
	g.Expect(os.ReadFile(s.Program("hello"))).To(Equal(before), "existing files are kept")
	g.Expect(s.Build(t.Context(), &log)).NotTo(Succeed(), "a failed build is not considered up to date")

	write(t, s, "hello/source/main.go", helloSource)
	g.Expect(s.Build(t.Context(), &log)).To(Succeed())

	s.artifacts[2].files = []string{"c/*.yaml"}
	g.Expect(s.Build(t.Context(), &log)).To(MatchError(ContainSubstring("has no file c/*.yaml")))
}

func TestConcurrentBuilds(t *testing.T) {
	g := NewWithT(t)
	s := checkout(t)

	var (
		logs   [2]bytes.Buffer
		builds sync.WaitGroup
	)
	for i := range logs {
		builds.Go(func() { g.Expect(s.Build(t.Context(), &logs[i])).To(Succeed()) })
	}

	builds.Wait()
	g.Expect(append(built(logs[0].String()), built(logs[1].String())...)).To(ConsistOf("hello", "other", "all.yaml"))
}

func TestNodeVersion(t *testing.T) {
	g := NewWithT(t)
	s, err := Find()
	g.Expect(err).NotTo(HaveOccurred())

	version := func(name string) string {
		i := slices.IndexFunc(s.WithNode().artifacts, func(a artifact) bool { return a.name == name })
		pins, err := os.ReadFile(filepath.Join(s.pins(s.WithNode().artifacts[i]), "go.mod"))
		g.Expect(err).NotTo(HaveOccurred())

		return regexp.MustCompile(`k8s\.io/kubernetes v\S+`).FindString(string(pins))
	}
	g.Expect(version(Kubelet)).To(And(Not(BeEmpty()), Equal(version(APIServer))))
}

// TestKubernetesVersions: a folder for another version of Kubernetes pins all its programs and libraries, and they are
// built into a folder of their own.
func TestKubernetesVersions(t *testing.T) {
	g := NewWithT(t)
	s, err := Find()
	g.Expect(err).NotTo(HaveOccurred())

	folders, err := filepath.Glob(filepath.Join(s.root, "test", "bed", "tools", kubernetesPins+"-*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(folders).NotTo(BeEmpty())

	for _, folder := range folders {
		_, minor, _ := strings.Cut(filepath.Base(folder), "-")
		t.Setenv("KUBERNETES", minor)

		other, err := Find()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(other.OfBed().Program(APIServer)).NotTo(Equal(s.Program(APIServer)))

		for _, a := range other.artifacts {
			if a.pins == kubernetesPins {
				g.Expect(other.pins(a)).To(Equal(folder), a.name)
			}
		}

		version, err := other.version(t.Context(), kubernetes(APIServer), "k8s.io/kubernetes")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version).To(HavePrefix("v" + minor + "."))

		pins, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		g.Expect(err).NotTo(HaveOccurred())

		library := strings.Replace(version, "v1.", "v0.", 1)

		for _, replaced := range regexp.MustCompile(`=> .*`).FindAllString(string(pins), -1) {
			g.Expect(replaced).To(HaveSuffix(" " + library))
		}
	}

	t.Setenv("KUBERNETES", "1.1")

	_, err = Find()
	g.Expect(err).To(MatchError(HavePrefix(`KUBERNETES is "1.1", but `)))
}

// TestClusterctlVersion: the program is of the same version as the library that tests compare with.
func TestClusterctlVersion(t *testing.T) {
	g := NewWithT(t)
	s, err := Find()
	g.Expect(err).NotTo(HaveOccurred())

	version := func(folder string) string {
		pins, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		g.Expect(err).NotTo(HaveOccurred())

		return regexp.MustCompile(`sigs\.k8s\.io/cluster-api v\S+`).FindString(string(pins))
	}
	g.Expect(version(s.pins(clusterctlArtifacts[0]))).To(And(Not(BeEmpty()), Equal(version(s.root))))
}

func TestFind(t *testing.T) {
	g := NewWithT(t)
	s, err := Find()
	g.Expect(err).NotTo(HaveOccurred())

	for _, a := range s.WithNode().WithFlux().WithClusterctl().artifacts {
		g.Expect(filepath.Join(s.pins(a), "go.mod")).To(BeARegularFile())
	}

	t.Chdir(t.TempDir())

	_, err = Find()
	g.Expect(err).To(MatchError(ErrNoCheckout))
}
