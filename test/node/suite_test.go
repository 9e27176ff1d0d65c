package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/cmd/dist/image"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/bed/node"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	// root is the module's root.
	root = "../.."
	// wantedVariable is set by `make e2e-node`. Without it the scenarios are skipped, because they
	// need a whole machine.
	wantedVariable = "E2E_NODE"
	// folderVariable passes the folder of the images to the program inside the namespaces.
	folderVariable = "E2E_NODE_FOLDER"
	// operatorVersion is the tag of the operator's image.
	operatorVersion = "v0.0.0-node"
)

// patience is the time that pods may take to start on a busy machine.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	code, err := enter(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = max(code, 1)
	}

	os.Exit(code)
}

// enter prepares everything outside, where the network may be available, and runs the tests in
// separate namespaces.
func enter(m *testing.M) (int, error) {
	if os.Getenv(wantedVariable) == "" {
		fmt.Println("the scenarios on a real node are skipped: `make e2e-node` runs them")
		return 0, nil
	}

	if err := node.Suited(); err != nil {
		fmt.Println("the scenarios on a real node are skipped:", err)
		return 0, nil
	}

	if os.Getenv(folderVariable) == "" {
		folder, err := prepare()
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(folder)

		os.Setenv(folderVariable, folder)
	}

	ended, code, err := node.Isolated()
	if ended || err != nil {
		return code, err
	}

	return m.Run(), nil
}

// prepare builds the programs of the node, and writes the images to a folder.
func prepare() (string, error) {
	ctx := context.Background()

	set, err := tools.Find()
	if err != nil {
		return "", err
	}

	if err := set.WithNode().Build(ctx, os.Stderr); err != nil {
		return "", err
	}

	folder, err := os.MkdirTemp("", "e2e-node-")
	if err != nil {
		return "", err
	}

	operator := exec.Command(
		"go", "run", "./cmd/dist", "image", "--version", operatorVersion, "--platforms", "linux/"+runtime.GOARCH,
		"--output", filepath.Join(folder, "operator.tar"),
	)
	operator.Dir = root
	program := exec.Command(
		"go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(folder, "program"),
		"./test/node/program",
	)
	program.Dir = root

	program.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, cmd := range []*exec.Cmd{operator, program} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
		}
	}

	data, err := os.ReadFile(filepath.Join(folder, "program"))
	if err != nil {
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
		_, err := image.Write(
			ctx,
			filepath.Join(folder, strings.NewReplacer("/", "-", ":", "-").Replace(name)+".tar"),
			name,
			image.Image{
				Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH},
				Files:    []image.File{{Path: "program", Data: data, Mode: 0o755}},
				Config:   ocispec.ImageConfig{User: "65532", Entrypoint: []string{"/program", role}},
			},
		)
		if err != nil {
			return "", err
		}
	}

	return folder, nil
}

// Shared by all scenarios.
var (
	cluster *bed.Bed
	machine *node.Node
	admin   client.Client
)

func TestNode(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "A real node")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error

	cluster = bedtest.Start(GinkgoT(), node.BedOptions())

	archives, err := filepath.Glob(filepath.Join(os.Getenv(folderVariable), "*.tar"))
	Expect(err).NotTo(HaveOccurred())
	machine, err = node.Start(ctx, cluster, archives...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(machine.Stop()).To(Succeed()) })

	admin, err = harness.NewClient(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
})

// run runs a program of the bed, as a user would.
func run(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()

	cmd := cluster.Command(ctx, name, args...)

	var stderr strings.Builder

	cmd.Stderr = &stderr
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", name, strings.Join(args, " "), &stderr)

	return string(out)
}
