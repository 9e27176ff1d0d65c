// Package nodetest runs suites of tests on a real node.
package nodetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/bed/node"
)

// Suite is a suite of scenarios that only a make target runs, because they need a whole machine.
type Suite struct {
	// Name is what a line about skipped scenarios begins with.
	Name string
	// Target is the make target that runs the suite, such as e2e-node, and Variable what it sets.
	Target, Variable string
	// Nodes is the number of nodes, at most two; zero means one.
	Nodes int
	// Prepare writes the images, as archives named *.tar, and what else the scenarios need to a folder. It runs
	// outside of the namespaces, where the network may be available, and returns what is missing to run the
	// scenarios, if anything is.
	Prepare func(ctx context.Context, folder string) (missing string, err error)
}

// Main runs the suite in separate namespaces, and exits. It is for TestMain.
func (s Suite) Main(m *testing.M) {
	code, err := s.run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = max(code, 1)
	}

	os.Exit(code)
}

func (s Suite) run(m *testing.M) (int, error) {
	if os.Getenv(s.Variable) == "" {
		fmt.Printf("%s are skipped: `make %s` runs them\n", s.Name, s.Target)
		return 0, nil
	}

	if err := node.Suited(); err != nil {
		fmt.Printf("%s are skipped: %v\n", s.Name, err)
		return 0, nil
	}

	if s.Folder() == "" {
		folder, err := os.MkdirTemp("", s.Target+"-")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(folder)

		missing, err := s.Prepare(context.Background(), folder)
		if err != nil {
			return 1, err
		}

		if missing != "" {
			fmt.Printf("%s are skipped: %s\n", s.Name, missing)
			return 0, nil
		}

		os.Setenv(s.folderVariable(), folder)
	}

	ended, code, err := node.Isolated()
	if ended || err != nil {
		return code, err
	}

	return m.Run(), nil
}

// folderVariable passes the folder to the program inside the namespaces.
func (s Suite) folderVariable() string { return s.Variable + "_FOLDER" }

// Folder returns the folder of what Prepare has written.
func (s Suite) Folder() string { return os.Getenv(s.folderVariable()) }

// Start starts a control plane and nodes with the images, until the suite has ended.
func (s Suite) Start(ctx context.Context) (*bed.Bed, []*node.Node) {
	ginkgo.GinkgoHelper()

	cluster := bedtest.Start(ginkgo.GinkgoT(), node.BedOptions())

	archives, err := filepath.Glob(filepath.Join(s.Folder(), "*.tar"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())

	nodes := make([]*node.Node, max(1, s.Nodes))
	for i := range nodes {
		nodes[i], err = node.Start(ctx, cluster, i, archives...)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		ginkgo.DeferCleanup(func() { gomega.Expect(nodes[i].Stop()).To(gomega.Succeed()) })
	}

	return cluster, nodes
}
