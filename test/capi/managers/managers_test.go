package managers

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSteps(t *testing.T) {
	core, bootstrap, plane, docker := Labels[0], Labels[1], Labels[2], Labels[3]

	three := []string{"v1.12.11", "v1.13.5", "v1.14.0"}

	for _, test := range []struct {
		name     string
		releases Releases
		steps    []Step
	}{
		{"everything is there",
			Releases{core: three, bootstrap: three, plane: three, docker: three},
			[]Step{
				{core: "v1.12.11", bootstrap: "v1.12.11", plane: "v1.12.11", docker: "v1.12.11"},
				{core: "v1.13.5", bootstrap: "v1.13.5", plane: "v1.13.5", docker: "v1.13.5"},
				{core: "v1.14.0", bootstrap: "v1.14.0", plane: "v1.14.0", docker: "v1.14.0"},
			}},
		{"versions are missing",
			Releases{core: three[1:], bootstrap: three[1:], plane: three[1:], docker: {"v1.14.0"}},
			[]Step{
				{core: "v1.13.5", bootstrap: "v1.13.5", plane: "v1.13.5", docker: "v1.14.0"},
				{core: "v1.14.0", bootstrap: "v1.14.0", plane: "v1.14.0", docker: "v1.14.0"},
			}},
		{"the newest of a minor version",
			Releases{core: {"v1.9.11", "v1.13.4", "v1.13.5"}, bootstrap: three, plane: three, docker: three},
			[]Step{
				{core: "v1.9.11", bootstrap: "v1.12.11", plane: "v1.12.11", docker: "v1.12.11"},
				{core: "v1.13.5", bootstrap: "v1.13.5", plane: "v1.13.5", docker: "v1.13.5"},
				{core: "v1.13.5", bootstrap: "v1.14.0", plane: "v1.14.0", docker: "v1.14.0"},
			}},
		{"a provider is missing", Releases{core: three, bootstrap: three, plane: three}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(test.releases.Steps()).To(Equal(test.steps))
		})
	}
}

func TestStepString(t *testing.T) {
	step := Step{}
	for _, label := range Labels {
		step[label] = "v1.13.5"
	}

	g := NewWithT(t)
	g.Expect(step.String()).To(Equal("v1.13.5"))

	step["infrastructure-docker"] = "v1.14.0"
	g.Expect(step.String()).To(Equal("cluster-api v1.13.5, bootstrap-kubeadm v1.13.5, control-plane-kubeadm v1.13.5, " +
		"infrastructure-docker v1.14.0"))
}

func TestFindCertManager(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()

	for _, file := range []string{
		"cert-manager-controller:v1.20.3", "cert-manager-webhook:v1.20.3", "cert-manager-cainjector:v1.20.3",
		"cert-manager-controller:v1.9.0", "cert-manager-webhook:v1.9.0", "cert-manager-cainjector:v1.9.0",
		"cert-manager-controller:v1.21.1", "cert-manager-webhook:v1.21.1", "capd-manager:v1.13.5",
	} {
		g.Expect(os.WriteFile(filepath.Join(folder, file), nil, 0o600)).To(Succeed())
	}

	version, programs, err := Finder{Folder: folder}.FindCertManager()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(Equal("v1.20.3"), "the newest one that is complete")
	g.Expect(programs).To(HaveLen(3))
	g.Expect(programs).To(HaveKeyWithValue(
		"quay.io/jetstack/cert-manager-webhook:v1.20.3", filepath.Join(folder, "cert-manager-webhook:v1.20.3")))

	version, _, err = Finder{}.FindCertManager()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(BeEmpty())
}

func TestFind(t *testing.T) {
	g := NewWithT(t)
	folder, cache := t.TempDir(), t.TempDir()
	finder := Finder{Folder: folder, Cache: cache, Log: io.Discard}

	own := filepath.Join(folder, "capd-manager:v1.13.5")
	g.Expect(os.WriteFile(own, nil, 0o600)).To(Succeed())

	built := filepath.Join(cache, "cluster-api-controller:v1.14.0")
	g.Expect(os.WriteFile(built, nil, 0o600)).To(Succeed())

	g.Expect(finder.Find(t.Context(), "gcr.io/k8s-staging-cluster-api/capd-manager:v1.13.5")).To(Equal(own))
	g.Expect(finder.Find(t.Context(), "registry.k8s.io/cluster-api/cluster-api-controller:v1.14.0")).To(Equal(built))

	_, err := finder.Find(t.Context(), "quay.io/jetstack/cert-manager-webhook:v1.21.1")
	g.Expect(err).To(MatchError("cert-manager-webhook:v1.21.1 is not in the folder MANAGERS, and no Go module has it"))
}
