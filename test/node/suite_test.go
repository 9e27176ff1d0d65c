package node

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/bed/node"
	"github.com/capstan-project/capstan/test/bed/node/nodetest"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/harness/suite"
	"github.com/capstan-project/capstan/test/node/archives"
)

const (
	// root is the module's root.
	root = "../.."
	// volumeImage has the release of a provider, as docs/air-gap.md describes.
	volumeImage = "example.org/providers:v1.0.0"
	// operatorVersion is the tag of the operator's image.
	operatorVersion = "v0.0.0-node"
)

var realNode = nodetest.Suite{
	Name: "the scenarios on a real node", Target: "e2e-node", Variable: "E2E_NODE", Prepare: prepare,
}

// mounted is the provider in volumeImage.
var mounted = sample{"infrastructure-mounted", "v1.0.0", "infrastructure-mounted-system", nil}

// patience is the time that pods may take to start on a busy machine.
const patience = 3 * time.Minute

func TestMain(m *testing.M) { realNode.Main(m) }

// prepare builds the programs of the node, and writes the images to a folder.
func prepare(ctx context.Context, folder string) (missing string, err error) {
	set, err := tools.Find()
	if err != nil {
		return "", err
	}

	if err := set.WithNode().Build(ctx, os.Stderr); err != nil {
		return "", err
	}

	builder := archives.Builder{Root: root}
	if err := builder.Operator(ctx, operatorVersion, folder); err != nil {
		return "", err
	}

	program := filepath.Join(folder, "program")
	if err := builder.Program(ctx, "./test/node/program", program); err != nil {
		return "", err
	}

	repository := filepath.Join(folder, "volume")
	if err := mounted.write(repository); err != nil {
		return "", err
	}

	if err := archives.WriteFiles(folder, volumeImage, repository); err != nil {
		return "", err
	}

	// The first argument of the program selects the behavior of an image.
	for name, role := range map[string]string{
		node.PauseImage:          "pause",
		managerImage + ":v1.0.0": "manager",
		managerImage + ":v1.1.0": "manager",
		managerImage + ":v1.2.0": "fail",
		managerImage + ":v1.3.0": "manager",
	} {
		if err := archives.Write(folder, name, program, "/program", role); err != nil {
			return "", err
		}
	}

	return "", nil
}

// Shared by all scenarios.
var (
	cluster *bed.Bed
	nodes   []*node.Node
	admin   client.Client
)

func TestNode(t *testing.T) {
	suite.Suite{Name: "A real node", Patience: patience}.Run(t)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error

	cluster, nodes = realNode.Start(ctx)

	admin, err = harness.NewClient(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
})

// run runs a program of the bed, as a user would, and returns its standard output.
func run(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	return bedtest.Output(GinkgoT(), cluster.Command(ctx, name, args...))
}
