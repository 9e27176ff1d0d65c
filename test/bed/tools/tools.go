// Package tools builds the programs of the test bed from source. Go modules in the folders next to
// this file pin their versions. Those listed in go.work are compiled with the dependencies of the
// project, so that each package is compiled once for all of them; the others, which need newer
// dependencies, with those of the program's release. Nothing but Go modules is downloaded, unless
// the caller allows official releases.
package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
)

// Programs in a Set, by file name.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	Helm3             = "helm"
	Helm4             = "helm4"
	Registry          = "registry"
	// Cainjector injects CAs as cert-manager does.
	Cainjector = "cainjector"
	// Programs of a real node; WithNode adds them.
	Kubelet        = "kubelet"
	KubeProxy      = "kube-proxy"
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	Ctr            = "ctr"
	// Programs of Flux; WithFlux adds them.
	SourceController = "source-controller"
	HelmController   = "helm-controller"
	// Clusterctl is Cluster API's own command line; WithClusterctl adds it.
	Clusterctl = "clusterctl"
)

// Helm returns the name of the helm program for tests that use one of them: Helm3, unless the environment variable HELM
// has another, as in `make helm4`. Only the tests of controllers/release use both.
func Helm() string { return cmp.Or(os.Getenv("HELM"), Helm3) }

// Manifests in a Set. Each is a YAML stream concatenated from files of a pinned module.
const (
	// KwokStages make nodes Ready and keep them so, and take pods through their phases as a kubelet
	// would.
	KwokStages = "kwok-stages.yaml"
	// CertManagerCRDs are the CustomResourceDefinitions of cert-manager.
	CertManagerCRDs = "cert-manager-crds.yaml"
	// FluxSourceCRDs and FluxHelmCRDs are the CustomResourceDefinitions of Flux's controllers;
	// WithFlux adds them.
	FluxSourceCRDs = "flux-source-crds.yaml"
	FluxHelmCRDs   = "flux-helm-crds.yaml"
)

// kubernetesPins is the folder that pins the control plane. Others, with "-" and a minor version added, pin other ones.
const kubernetesPins = "kubernetes"

// artifact is a file of a Set: a program if pkg is set, otherwise manifests.
type artifact struct {
	name string
	pins string // the folder next to this file whose go.mod pins it
	// pkg is the main package: one of a module that is pinned, or one in a folder of the pins, which begins with "./".
	pkg string
	// set by the linker; {version of M}, {major of M} and {minor of M} are replaced by those of module M
	variables []string
	module    string   // the module with the manifests
	files     []string // patterns of the manifests in module
	release   release  // where the program's project publishes it
}

// bedArtifacts are what a bed runs, and programs to look at it.
var bedArtifacts = []artifact{
	{
		name: Etcd, pins: kubernetesPins, pkg: "go.etcd.io/etcd/server/v3",
		release: release{
			module: "go.etcd.io/etcd/server/v3",
			url:    "https://github.com/etcd-io/etcd/releases/download/{version}/etcd-{version}-linux-{arch}.tar.gz",
			member: "etcd-{version}-linux-{arch}/etcd",
			sums:   "https://github.com/etcd-io/etcd/releases/download/{version}/SHA256SUMS",
		},
	},
	kubernetes(APIServer),
	kubernetes(ControllerManager),
	kubernetes(Scheduler),
	{name: Kwok, pins: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"},
	{
		name:   KwokStages,
		pins:   "kwok",
		module: "sigs.k8s.io/kwok",
		files: []string{
			"kustomize/stage/node/fast/node-*.yaml",
			"kustomize/stage/node/heartbeat/node-*.yaml",
			"kustomize/stage/pod/fast/pod-*.yaml",
		},
	},
	{
		name: CertManagerCRDs, pins: "cert-manager", module: "github.com/cert-manager/cert-manager",
		files: []string{"deploy/crds/*.yaml"},
	},
	kubernetes(Kubectl),
	{
		name: Helm3, pins: "helm3", pkg: "helm.sh/helm/v3/cmd/helm",
		variables: []string{
			"helm.sh/helm/v3/internal/version.version={version of helm.sh/helm/v3}",
			// The version of Kubernetes that `helm template` and `helm lint` assume; helm4 determines it
			// from its own build information.
			"helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={minor of k8s.io/client-go}",
			"helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor={minor of k8s.io/client-go}",
		},
		release: release{
			module: "helm.sh/helm/v3",
			url:    "https://get.helm.sh/helm-{version}-linux-{arch}.tar.gz",
			member: "linux-{arch}/helm",
			sums:   "https://get.helm.sh/helm-{version}-linux-{arch}.tar.gz.sha256sum",
		},
	},
}

// testArtifacts are what tests need in addition.
var testArtifacts = []artifact{
	{
		name: Helm4, pins: "helm4", pkg: "helm.sh/helm/v4/cmd/helm",
		variables: []string{"helm.sh/helm/v4/internal/version.version={version of helm.sh/helm/v4}"},
	},
	{
		name: Registry,
		pins: "registry",
		pkg:  "github.com/distribution/distribution/v3/cmd/registry",
		variables: []string{
			"github.com/distribution/distribution/v3/version.version={version of github.com/distribution/distribution/v3}",
		},
	},
	{name: Cainjector, pins: "cert-manager", pkg: "./cainjector"},
}

// nodeArtifacts are pinned separately, because their dependencies are used by nothing else.
var nodeArtifacts = []artifact{
	nodeProgram(Kubelet), nodeProgram(KubeProxy),
	containerd(Containerd), containerd(ContainerdShim), containerd(Ctr),
}

func nodeProgram(name string) artifact {
	a := kubernetes(name)
	a.pins = "node"

	return a
}

func containerd(name string) artifact {
	const module = "github.com/containerd/containerd/v2"

	return artifact{
		name: name, pins: "containerd", pkg: module + "/cmd/" + name,
		variables: []string{module + "/version.Version={version of " + module + "}"},
	}
}

// fluxArtifacts take longer to build than all the others together.
var fluxArtifacts = []artifact{
	{name: SourceController, pins: "flux-source", pkg: "github.com/fluxcd/source-controller"},
	{name: HelmController, pins: "flux-helm", pkg: "github.com/fluxcd/helm-controller"},
	{
		name:   FluxSourceCRDs,
		pins:   "flux-source",
		module: "github.com/fluxcd/source-controller",
		files:  []string{"config/crd/bases/*.yaml"},
	},
	{
		name:   FluxHelmCRDs,
		pins:   "flux-helm",
		module: "github.com/fluxcd/helm-controller",
		files:  []string{"config/crd/bases/*.yaml"},
	},
}

// clusterctlArtifacts are needed only by the tests of compatibility.
var clusterctlArtifacts = []artifact{
	{name: Clusterctl, pins: "clusterctl", pkg: "sigs.k8s.io/cluster-api/cmd/clusterctl"},
}

// kubernetes returns a program of Kubernetes with its version built in. Helm's kubeVersion checks
// and Cluster API's managers reject an API server without one.
func kubernetes(name string) artifact {
	const module = "k8s.io/kubernetes"

	url := "https://dl.k8s.io/release/{version}/bin/linux/{arch}/" + name
	a := artifact{
		name: name, pins: kubernetesPins, pkg: module + "/cmd/" + name,
		release: release{module: module, url: url, sums: url + ".sha256"},
	}

	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		a.variables = append(
			a.variables,
			pkg+".gitVersion={version of "+module+"}",
			pkg+".gitMajor={major of "+module+"}",
			pkg+".gitMinor={minor of "+module+"}",
		)
	}

	return a
}

// Set is the programs and manifests of a checkout: in its bin folder, or in a folder below it for another version of
// Kubernetes than that of most tests.
type Set struct {
	root       string
	kubernetes string // the other version, such as 1.33
	artifacts  []artifact
	// releases is the client of releases; nil if everything is compiled, also after it has failed once.
	releases atomic.Pointer[http.Client]
}

// ErrNoCheckout is returned by Find outside of a checkout of the project.
var ErrNoCheckout = errors.New(
	"neither this folder nor one above it is a checkout of github.com/capstan-project/capstan; go to one",
)

var moduleLine = regexp.MustCompile(`(?m)^module github\.com/capstan-project/capstan\s*$`)

// Find returns the set of the checkout that contains the current folder, for the minor version of Kubernetes in the
// variable KUBERNETES. It builds nothing.
func Find() (*Set, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the checkout: %w", err)
	}

	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("find the checkout: %w", err)
		}

		if moduleLine.Match(mod) {
			set := &Set{root: dir, kubernetes: os.Getenv("KUBERNETES")}

			if err := set.check(); err != nil {
				return nil, err
			}

			return set.of(slices.Concat(bedArtifacts, testArtifacts)), nil
		}

		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, ErrNoCheckout
		}

		dir = parent
	}
}

// check returns an error if no folder pins the programs of the version of Kubernetes.
func (s *Set) check() error {
	dir := s.pins(kubernetes(APIServer))
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return fmt.Errorf("KUBERNETES is %q, but %s has no module; choose a version that has one", s.kubernetes, dir)
	}

	return nil
}

// OfBed returns a set with only what a bed runs, kubectl and Helm.
func (s *Set) OfBed() *Set { return s.of(bedArtifacts) }

// WithNode returns a set with the programs of a real node added, which a bed does not need.
func (s *Set) WithNode() *Set { return s.with(nodeArtifacts) }

// WithFlux returns a set with the controllers of Flux added.
func (s *Set) WithFlux() *Set { return s.with(fluxArtifacts) }

// WithClusterctl returns a set with clusterctl added.
func (s *Set) WithClusterctl() *Set { return s.with(clusterctlArtifacts) }

func (s *Set) with(more []artifact) *Set { return s.of(slices.Concat(s.artifacts, more)) }

func (s *Set) of(artifacts []artifact) *Set {
	return &Set{root: s.root, kubernetes: s.kubernetes, artifacts: artifacts}
}

// WithReleases returns a set for which Build downloads what projects publish for this platform
// instead of compiling it, unless a download fails.
func (s *Set) WithReleases() *Set {
	set := s.with(nil)
	set.releases.Store(newReleaseClient())

	return set
}

// Dir returns the folder of the programs, for use in PATH.
func (s *Set) Dir() string {
	if s.kubernetes == "" {
		return filepath.Join(s.root, "bin")
	}

	return filepath.Join(s.root, "bin", kubernetesPins+"-"+s.kubernetes)
}

// Program returns the path of a program. It exists after Build.
func (s *Set) Program(name string) string { return filepath.Join(s.Dir(), name) }

// Manifests returns the path of a YAML stream. It exists after Build.
func (s *Set) Manifests(name string) string { return filepath.Join(s.Cache(), name) }

// Cache returns the folder of everything that is not a program: manifests, stamps, the lock, unfinished files, and what
// beds keep for others.
func (s *Set) Cache() string { return filepath.Join(s.Dir(), ".bed") }

func (s *Set) path(a artifact) string {
	if a.pkg == "" {
		return s.Manifests(a.name)
	}

	return s.Program(a.name)
}

// pins returns the folder whose go.mod pins a.
func (s *Set) pins(a artifact) string {
	dir := filepath.Join(s.root, "test", "bed", "tools", a.pins)
	if a.pins == kubernetesPins && s.kubernetes != "" {
		return dir + "-" + s.kubernetes
	}

	return dir
}
