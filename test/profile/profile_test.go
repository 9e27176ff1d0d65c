package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// machine is a machine whose processes a test changes.
type machine map[int]stat

// run adds a process, or sets its processor time and that of its children that have ended.
func (m machine) run(pid, parent int, own, children time.Duration) {
	m[pid] = stat{identity: identity{pid: pid, started: "1"}, parent: parent, own: own, children: children}
}

func TestProfile(t *testing.T) {
	g := NewWithT(t)

	// 10 is the command; 11 is a suite with a server, a helm and a child that is never seen; 20 is none of its own.
	names := map[int]use{
		10: {noSuite, "make"}, 11: {"test/chart", testProgram}, 12: {"test/chart", tools.Etcd}, 13: {"test/chart", "helm"},
		14: {"test/chart", "kubectl"},
	}
	parents := map[int]use{}

	p := newProfile("/src", 10)
	update := func(m machine) {
		p.update(m, func(now *process, parent use) { parents[now.pid], now.use = parent, names[now.pid] })
	}

	m := machine{}
	m.run(1, 0, time.Hour, time.Hour)
	m.run(10, 1, time.Second, 0)
	m.run(20, 1, time.Minute, 0)
	update(m)

	m.run(11, 10, 2*time.Second, 0)
	m.run(12, 11, 3*time.Second, 0)
	m.run(13, 11, time.Second, 0)
	m.run(21, 20, time.Minute, 0)
	update(m)
	g.Expect(parents[11]).To(Equal(names[10]))
	g.Expect(parents[12]).To(Equal(names[11]))
	g.Expect(parents).NotTo(HaveKey(20))
	g.Expect(parents).NotTo(HaveKey(21))

	// helm has ended, after half a second of which nothing was seen.
	delete(m, 13)
	m.run(11, 10, 4*time.Second, 1500*time.Millisecond)
	update(m)

	// A program has started and ended.
	m.run(11, 10, 4*time.Second, 1700*time.Millisecond)
	update(m)

	// The suite has ended, and a program of it at the same time. Its server has another parent now, and takes more.
	m.run(14, 11, 5*time.Second, 0)
	update(m)
	delete(m, 11)
	delete(m, 14)
	m.run(12, 1, 10*time.Second, 0)
	m.run(10, 1, time.Second, 11*time.Second)
	update(m)

	// Another process has the number of the server, and is none of ours.
	m[12] = stat{identity: identity{pid: 12, started: "2"}, parent: 1, own: time.Hour}
	update(m)

	g.Expect(p.used).To(Equal(map[use]time.Duration{
		{noSuite, "make"}:            time.Second,
		{"test/chart", testProgram}:  4*time.Second + 300*time.Millisecond, // of 11 s, 10.7 s were seen
		{"test/chart", tools.Etcd}:   10 * time.Second,
		{"test/chart", "kubectl"}:    5 * time.Second,
		{"test/chart", "helm"}:       1500 * time.Millisecond,
		{"test/chart", shortProgram}: 200 * time.Millisecond,
	}))
	g.Expect(p.count).To(Equal(map[string]int{"make": 1, testProgram: 1, tools.Etcd: 1, "helm": 1, "kubectl": 1}))
}

func TestTables(t *testing.T) {
	p := newProfile("/src", 10)
	p.count = map[string]int{testProgram: 2, tools.APIServer: 1}
	p.used = map[use]time.Duration{
		{"test/chart", testProgram}:               10 * time.Second,
		{"test/chart", startOf + tools.APIServer}: 2 * time.Second,
		{"test/chart", tools.APIServer}:           7 * time.Second,
		{"test/model", testProgram}:               500 * time.Millisecond,
		{noSuite, "link"}:                         300 * time.Millisecond,
		{noSuite, "compile"}:                      200 * time.Millisecond,
	}

	NewWithT(t).Expect(p.String()).To(Equal(`
Processor time by program:

  seconds      %  processes  program
     10.5   52.5          2  test programs
      7.0   35.0          1  kube-apiserver
      2.0   10.0             start of kube-apiserver
      0.5    2.5             others
     20.0  100.0             total

Processor time by suite, in seconds:

    total        tests    API start   API server         etcd  controllers     operator       others  suite
     19.0         10.0          2.0          7.0          0.0          0.0          0.0          0.0  test/chart
      1.0          0.5          0.0          0.0          0.0          0.0          0.0          0.5  others
`))
}

func TestProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a profile requires Linux")
	}

	g := NewWithT(t)

	all, err := processes()
	g.Expect(err).NotTo(HaveOccurred())

	own := all[os.Getpid()]
	g.Expect(own.pid).To(Equal(os.Getpid()))
	g.Expect(own.parent).To(Equal(os.Getppid()))

	// This program is a suite, as go test has started it.
	root, err := filepath.Abs("../..")
	g.Expect(err).NotTo(HaveOccurred())

	p := newProfile(root, 0)
	now := &process{stat: own}
	p.describe(now, use{noSuite, "go"})
	g.Expect(now.use).To(Equal(use{"test/profile", testProgram}))
}

func TestParseStat(t *testing.T) {
	g := NewWithT(t)

	s, err := parseStat([]byte("7 (a) b) S 3 0 0 0 -1 0 0 0 0 0 150 50 10 20 20 0 4 0 99 0 0\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s).To(Equal(stat{
		identity: identity{pid: 7, started: "99"}, parent: 3, own: 2 * time.Second, children: 300 * time.Millisecond,
	}))

	for _, invalid := range []string{"", "7 (a) S 3", "x (a) S 3 0 0 0 -1 0 0 0 0 0 150 50 10 20 20 0 4 0 99"} {
		_, err := parseStat([]byte(invalid))
		g.Expect(err).To(HaveOccurred(), invalid)
	}
}
