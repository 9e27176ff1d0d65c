package offers

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/fetch"
)

const samples = "../../test/data/providers"

// newDocker returns the sample provider docker, which comes from a folder.
func newDocker(folder string) *v1alpha2.InfrastructureProvider {
	docker := &v1alpha2.InfrastructureProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker", UID: "uid"},
	}
	docker.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: folder}

	return docker
}

// newResolver returns a resolver of sources without a cluster.
func newResolver(t *testing.T) *fetch.Resolver {
	t.Helper()

	registry, err := fetch.NewRegistry("", nil, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return &fetch.Resolver{
		Readers: &access.Readers{}, Catalog: fetch.CatalogFile(fetch.DefaultConfigFile), Registry: registry,
	}
}

func TestListHasContracts(t *testing.T) {
	g := NewWithT(t)

	offered, err := List(t.Context(), newResolver(t), newDocker(samples))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(offered).To(HaveExactElements(HaveField("Version", "v1.1.0"), HaveField("Version", "v1.0.0")))
	g.Expect(offered).To(HaveEach(HaveField("Contract", Not(BeEmpty()))))
}

func TestUpgrades(t *testing.T) {
	offered := []v1alpha2.AvailableUpgrade{
		{Version: "v2.0.0", Contract: "v1beta3"}, {Version: "v1.2.0", Contract: "v1beta2"},
		{Version: "v1.1.2", Contract: "v1beta1"}, {Version: "v1.1.0", Contract: "v1beta1"},
		{Version: "v1.0.6-rc.1", Contract: "v1beta1"}, {Version: "v1.0.5", Contract: "v1beta1"},
		{Version: "v1.0.0", Contract: "v1beta1"},
	}

	for name, test := range map[string]struct {
		installed string
		allowed   []string
		want      []string // version contract
	}{
		"the newest patch and the newest of all": {
			"v1.0.0", []string{"v1beta1", "v1beta2"},
			[]string{"v1.0.5 v1beta1", "v1.2.0 v1beta2"},
		},
		"no contract that does not fit": {
			"v1.0.0", []string{"v1beta1"},
			[]string{"v1.0.5 v1beta1", "v1.1.2 v1beta1"},
		},
		"no patch that is installed": {"v1.0.5", []string{"v1beta1"}, []string{"v1.1.2 v1beta1"}},
		"a patch alone":              {"v1.1.0", []string{"v1beta1"}, []string{"v1.1.2 v1beta1"}},
		"nothing newer":              {"v1.2.0", []string{"v1beta1", "v1beta2"}, nil},
		"no version that is known":   {"unknown", []string{"v1beta1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string

			allowed := func(contract string) bool { return slices.Contains(test.allowed, contract) }
			for _, u := range Upgrades(offered, test.installed, allowed) {
				got = append(got, u.Version+" "+u.Contract)
			}

			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}
