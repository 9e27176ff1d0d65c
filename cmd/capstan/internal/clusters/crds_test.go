package clusters

import (
	"testing"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/controllers/crds"
)

func TestPrintCRDs(t *testing.T) {
	three := int64(3)
	items := []crds.Item{
		{
			Name:     "clusters.cluster.x-k8s.io",
			Provider: "cluster-api",
			Version:  "v1.13.5",
			Served:   []string{"v1beta1", "v1beta2"},
			Storage:  "v1beta2",
			Stored: []string{
				"v1beta1",
				"v1beta2",
			},
			Objects:  &three,
			State:    crds.Migrating,
			Progress: &crds.Progress{Done: 1, Total: 3},
		},
		{
			Name:     "awsclusters.infrastructure.cluster.x-k8s.io",
			Provider: "infrastructure-aws",
			Version:  "v2.11.1",
			Served:   []string{"v1beta2"},
			Storage:  "v1beta2",
			Stored:   []string{"v1beta2"},
			Objects:  &three,
			State:    crds.Managed,
		},
		{Name: "azureclusters.infrastructure.cluster.x-k8s.io", Provider: "infrastructure-azure", Served: []string{"v1beta1"},
			Storage: "v1beta1", Stored: []string{"v1beta1"}, State: crds.Unmanaged},
	}

	write := func(p *cli.Printer) error { return printCRDs(p, items) }
	clitest.Golden(t, "crds.txt", clitest.Printed(t, cli.Printer{Color: true}, write))
}
