package plan

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// TestPlanChoosesByContract checks that without an exact version the newest is planned that works with
// core, or, for core, with the installed providers.
func TestPlanChoosesByContract(t *testing.T) {
	folder := t.TempDir()
	NewWithT(t).Expect(os.CopyFS(folder, os.DirFS(samples))).To(Succeed())

	for _, label := range []string{"infrastructure-docker", "cluster-api"} {
		for _, version := range []string{"v1.0.0", "v1.1.0"} {
			source := filepath.Join(samples, label, "v1.0.0")
			release := filepath.Join(folder, label, version)
			NewWithT(t).Expect(os.RemoveAll(release)).To(Succeed())
			NewWithT(t).Expect(os.CopyFS(release, os.DirFS(source))).To(Succeed())
			NewWithT(t).Expect(os.WriteFile(filepath.Join(release, "metadata.yaml"), []byte(
				"apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n"+
					"releaseSeries: [{major: 1, minor: 0, contract: v1beta1}, {major: 1, minor: 1, contract: v1beta2}]"),
				0o600)).To(Succeed())
		}
	}

	docker := func(version string) v1alpha2.Provider {
		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{
			Namespace: "capd-system", Name: "docker", UID: "docker",
		}}
		p.Spec.Version = version
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: folder}

		return p
	}
	core := func(contract string) v1alpha2.Provider {
		p := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{
			Namespace: "capi-system", Name: "cluster-api", UID: "core",
		}}
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: folder}

		if contract != "" {
			p.Status.Contract = &contract
			p.Status.Release = &v1alpha2.ReleaseStatus{}
		}

		return p
	}
	pinned := docker(">=1.0")
	pinned.GetStatus().DesiredVersion = "v1.1.0"

	for name, test := range map[string]struct {
		provider, core v1alpha2.Provider
		preview        bool
		want, reason   string
	}{
		"core v1beta1":                   {docker(""), core("v1beta1"), false, "v1.0.0", ""},
		"core v1beta1, a range":          {docker(">=1.0"), core("v1beta1"), false, "v1.0.0", ""},
		"core v1beta1, an exact version": {docker("v1.1.0"), core("v1beta1"), false, "v1.1.0", ""},
		"core v1beta1, a pinned version": {pinned, core("v1beta1"), false, "v1.1.0", ""},
		"core v1beta2":                   {docker(""), core("v1beta2"), false, "v1.1.0", ""},
		"core that is not installed":     {docker(""), core(""), false, "", v1alpha2.WaitingForCoreProviderReadyReason},
		"no core":                        {docker(""), nil, false, "", v1alpha2.WaitingForCoreProviderReadyReason},
		"no core, an exact version":      {docker("v1.1.0"), nil, false, "v1.1.0", ""},
		"no core yet, in a preview":      {docker(""), nil, true, "v1.1.0", ""},
		"core v1beta1, in a preview":     {docker(""), core("v1beta1"), true, "v1.0.0", ""},
		"core v1beta1, none that it uses": {
			docker("~1.1"), core("v1beta1"), false, "", v1alpha2.CAPIVersionIncompatibilityReason,
		},
		"core itself": {core(""), nil, false, "v1.1.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := readOnlyClient()

			if test.core != nil {
				c = readOnlyClient(test.core)
			}

			planner := newPlanner(c)
			planner.AwaitCore = !test.preview

			planned, err := planner.Plan(t.Context(), Request{Provider: test.provider, Scope: c})

			if test.reason != "" {
				g.Expect(problem.Is(err, test.reason)).To(BeTrue(), "%v", err)
				g.Expect(problem.Of(err).Outcome).To(Equal(problem.Waiting))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(planned.Version).To(Equal(test.want))
		})
	}
}
