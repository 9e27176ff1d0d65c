package plan

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/source"
)

// installBoth installs the two versions of a provider that a folder has, the newer one last.
func installBoth(t *testing.T, c client.Client, p *v1alpha2.InfrastructureProvider, folder string) {
	t.Helper()

	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: folder}

	for _, version := range []string{"v1.0.0", "v1.1.0"} {
		p.Spec.Version = version
		install(t, c, p)
	}
}

// TestReturnToAStoredVersion: a version that was installed before is used again although the folder no longer has it.
func TestReturnToAStoredVersion(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	g.Expect(os.CopyFS(folder, os.DirFS(samples))).To(Succeed())

	c := writableClient()
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
	installBoth(t, c, p, folder)

	g.Expect(os.RemoveAll(filepath.Join(folder, "infrastructure-docker", "v1.0.0"))).To(Succeed())

	for name, test := range map[string]struct {
		change func(*v1alpha2.InfrastructureProvider)
		kept   bool
	}{
		"the exact version":      {func(p *v1alpha2.InfrastructureProvider) { p.Spec.Version = "v1.0.0" }, true},
		"the same without its v": {func(p *v1alpha2.InfrastructureProvider) { p.Spec.Version = "1.0.0" }, true},
		"a range":                {func(p *v1alpha2.InfrastructureProvider) { p.Spec.Version = "~1.0.0" }, false},
		"one that was not there": {func(p *v1alpha2.InfrastructureProvider) { p.Spec.Version = "v1.0.1" }, false},
		"content with another digest": {
			func(p *v1alpha2.InfrastructureProvider) { p.Spec.FetchConfig.Digest = "sha256:1" }, false,
		},
		"a version of another namespace": {func(p *v1alpha2.InfrastructureProvider) {
			p.Namespace = "other"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			asks := p.DeepCopy()
			asks.Spec.Version = "v1.0.0"
			test.change(asks)

			planned, err := newPlanner(c).Plan(t.Context(), Request{Provider: asks, Scope: c})
			if !test.kept {
				g.Expect(source.IsNotFound(err)).To(BeTrue(), "%v", err)
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(planned.Version).To(Equal("v1.0.0"))
			g.Expect(planned.Chart.Digest).To(Equal(p.Status.History[1].ChartDigest))
			g.Expect(planned.Chart.Outdated).To(MatchError(ContainSubstring("is not available; the source has v1.1.0")))

			_, err = newPlanner(c).Plan(t.Context(), Request{Provider: asks, Scope: c, Refresh: true})
			g.Expect(source.IsNotFound(err)).To(BeTrue(), "%v", err)
		})
	}
}

// TestProviderThatIsNoLongerListed: it keeps the versions that it had, whatever else of its resource changes.
func TestProviderThatIsNoLongerListed(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	g.Expect(os.CopyFS(filepath.Join(folder, "infrastructure-left"),
		os.DirFS(filepath.Join(samples, "infrastructure-docker")))).To(Succeed())

	c := writableClient()
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capl-system", Name: "left"}}
	installBoth(t, c, p, folder)

	p.Spec.FetchConfig = nil
	p.Status.DesiredVersion = "v1.1.0"

	for name, test := range map[string]struct {
		namespace, version string
		planned            string
	}{
		"the installed version":    {"capl-system", "v1.1.0", "v1.1.0"},
		"an earlier one":           {"capl-system", "1.0.0", "v1.0.0"},
		"a range with it":          {"capl-system", "~1.1", "v1.1.0"},
		"no version":               {"capl-system", "", "v1.1.0"},
		"another version":          {"capl-system", "v1.2.0", ""},
		"a range without it":       {"capl-system", "~1.0", ""},
		"one of another namespace": {"other", "v1.1.0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, refresh := range []bool{false, true} {
				g := NewWithT(t)
				asks := p.DeepCopy()
				asks.Namespace, asks.Spec.Version = test.namespace, test.version

				planned, err := newPlanner(c).Plan(t.Context(), Request{Provider: asks, Scope: c, Refresh: refresh})
				if test.planned == "" {
					g.Expect(err).To(MatchError(ContainSubstring("InfrastructureProvider left is neither in clusterctl's list")))
					continue
				}

				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(planned.Version).To(Equal(test.planned))
				g.Expect(planned.Chart.Outdated).To(MatchError(ContainSubstring("set spec.fetchConfig")))
			}
		})
	}
}
