package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// The programs to compare. The floor is the time in which the API server alone serves the CRDs.
const (
	capstan = "capstan"
	kubectl = "kubectl"
	peer    = "cluster-api-operator"
	before  = "before"
	floor   = "crds"
)

var programs = []string{floor, kubectl, peer, before, capstan}

// operator returns the path of an operator of Capstan: this build's, or one that is compared with it. It is empty for
// other programs.
func (o options) operator(program string) string {
	switch program {
	case capstan:
		return "bin/operator"
	case before:
		return o.before
	}

	return ""
}

// exists reports whether a program can be measured.
func (o options) exists(program string) bool {
	switch program {
	case peer:
		return harness.HasPeer()
	case before:
		return o.before != ""
	}

	return true
}

// setting is what is the same in all rounds.
type setting struct {
	options
	programs []string
	profiler profiler
	real     bool // whether the providers are real ones

	// older and newer are the versions of five providers before and after the upgrade of all.
	older, newer []*harness.Release
	// middle is the version to which the provider older[upgraded] is upgraded alone.
	middle *harness.Release
}

// Places of providers in older and newer. Upgrading one of them and rolling it back leaves CRDs of middle behind, so
// the later upgrade of all changes the CRDs of each.
const (
	upgraded = 3 // infrastructure-docker
	changed  = 4 // infrastructure-aws, the largest
)

// versions are the versions of the providers in harness.Standard: older, newer, and of one the middle one.
var (
	olderVersions = []string{"v1.13.5", "v1.13.5", "v1.13.5", "v1.12.11", "v2.10.3"}
	newerVersions = []string{"v1.14.0", "v1.14.0", "v1.14.0", "v1.14.0", "v2.11.1"}
	middleVersion = "v1.13.5"
)

// Versions of small providers, which are measured if there are no real ones.
const olderSample, newerSample = "v1.0.0", "v1.1.0"

func newSetting(ctx context.Context, o options) (*setting, error) {
	s := &setting{options: o}

	for _, program := range programs {
		wanted := o.only == "" || slices.Contains(strings.Split(o.only, ","), program)
		if wanted && o.exists(program) {
			s.programs = append(s.programs, program)
		}
	}

	profiler, err := newProfiler(o.profile)
	if err != nil {
		return nil, err
	}

	s.profiler = profiler

	folder := os.Getenv(testproviders.Variable)
	if folder == "" {
		fmt.Fprintln(os.Stderr,
			"PROVIDERS is not set: measuring small samples, which is hardly meaningful; set it to a folder of real releases")
		s.useSamples()

		return s, nil
	}

	return s, s.load(ctx, folder)
}

// load reads the real providers.
func (s *setting) load(ctx context.Context, folder string) error {
	s.real = true

	load := func(place int, version string) (*harness.Release, error) {
		wanted := harness.Standard[place]
		wanted.Version = version

		release, err := harness.Load(ctx, folder, wanted)
		if err == nil && release.Bundle.Version != version {
			err = fmt.Errorf("%s has no %s %s", folder, wanted.Label, version)
		}

		return release, err
	}

	for i := range harness.Standard {
		older, err := load(i, olderVersions[i])
		if err != nil {
			return err
		}

		newer, err := load(i, newerVersions[i])
		if err != nil {
			return err
		}

		s.older, s.newer = append(s.older, older), append(s.newer, newer)
	}

	var err error

	s.middle, err = load(upgraded, middleVersion)

	return err
}

// useSamples uses small providers.
func (s *setting) useSamples() {
	for _, wanted := range harness.Standard {
		providerType, name := v1alpha2.ParseLabel(wanted.Label)
		key := types.NamespacedName{Namespace: wanted.Label + "-system", Name: name}
		object := strings.ReplaceAll(wanted.Label, "-", "")
		s.older = append(s.older, harness.Small(providerType, key, object, olderSample))
		s.newer = append(s.newer, harness.Small(providerType, key, object, newerSample))
	}

	s.middle = s.newer[upgraded]
}

// expand returns the components of a release with the values of its variables.
func expand(r *harness.Release) (string, error) {
	text, err := expr.Parse(string(r.Bundle.Components))
	if err != nil {
		return "", err
	}

	return text.Expand(r.Variables)
}

// managers returns the images of the Deployments of a release by the names of these.
func managers(r *harness.Release) (map[string][]string, error) {
	text, err := expand(r)
	if err != nil {
		return nil, err
	}

	objects, err := utilyaml.ToUnstructured([]byte(text))
	if err != nil {
		return nil, err
	}

	images := map[string][]string{}

	for i := range objects {
		if objects[i].GetKind() == "Deployment" {
			deployment, err := toDeployment(&objects[i])
			if err != nil {
				return nil, err
			}

			images[deployment.Name] = imagesOf(deployment)
		}
	}

	return images, nil
}
