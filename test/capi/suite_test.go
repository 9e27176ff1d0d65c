// Package capi runs cert-manager and Cluster API's own managers on a real node, with a Cluster in memory, while
// Capstan upgrades them and all that can fail fails. `make e2e-capi` runs it.
package capi

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/node"
	"github.com/capstan-project/capstan/test/bed/node/nodetest"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/harness/suite"
)

const (
	// root is the module's root.
	root = "../.."
	// operatorVersion is the tag of the operator's image.
	operatorVersion = "v0.0.0-capi"
)

var realNode = nodetest.Suite{
	Name: "the scenarios with Cluster API's managers", Target: "e2e-capi", Variable: "E2E_CAPI", Nodes: 2,
	Prepare: prepare,
}

// patience is the time that managers may take to start on a busy machine.
const patience = 5 * time.Minute

func TestMain(m *testing.M) { realNode.Main(m) }

// Shared by all scenarios.
var (
	cluster *bed.Bed
	nodes   []*node.Node
	admin   client.Client
	hand    *atHand
)

func TestCAPI(t *testing.T) {
	log.SetLogger(logr.Discard()) // it would get a warning for each object of a canary
	suite.Suite{Name: "Cluster API's managers", Patience: patience}.Run(t)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error

	hand, err = readAtHand(realNode.Folder())
	Expect(err).NotTo(HaveOccurred())

	cluster, nodes = realNode.Start(ctx)

	admin, err = harness.NewClient(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
})
