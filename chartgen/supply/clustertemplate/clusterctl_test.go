package clustertemplate_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/clustertemplate"
	"github.com/capstan-project/capstan/test/testproviders"
)

// request returns the request of all comparisons.
func request(flavor string) clustertemplate.Request {
	return clustertemplate.Request{
		Name:              "dev",
		Namespace:         "team",
		Flavor:            flavor,
		KubernetesVersion: "v1.34.0",
		WorkerMachines:    new(int64(2)),
	}
}

// assignments are values for all required variables of a template, by what they test.
var assignments = map[string]string{
	"plain":    "plain",
	"empty":    "",
	"number":   "3",
	"quote":    `it's "quoted"`,
	"colon":    "key: value",
	"newline":  "first\nsecond",
	"template": `{{ fail "rendered" }}`,
	"dollar":   "$HOME ${HOME} $$",
	"alias":    "*unknown",
}

// corrections are flavors for which clusterctl generates other manifests, with the reason. The
// manifests of Capstan are tested by TestGenerateAddsClasses.
var corrections = map[string]string{
	"infrastructure-sample/twice": "clusterctl repeats a ClusterClass for each Cluster that uses it",
}

// noClassFile is the error of clusterctl if a release has no file for a ClusterClass. It requires one
// even if the class is in the template (flavors of aws), or is published as a flavor (azure, gcp).
// Capstan generates the template alone, and returns the class as missing if it is not in the
// template.
const noClassFile = "failed to get the cluster class template"

// TestGenerateLikeClusterctl checks that the manifests are those of clusterctl, for every template
// and values of all kinds.
func TestGenerateLikeClusterctl(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())

	for _, folder := range providerFolders(t) {
		versions, err := os.ReadDir(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for _, version := range versions {
			path := filepath.Join(folder, version.Name())
			set, err := clustertemplate.FromFolder(t.Context(), path, clustertemplate.Infrastructure{})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			for _, flavor := range set.Flavors() {
				for _, kind := range slices.Sorted(maps.Keys(assignments)) {
					t.Run(strings.Join([]string{set.Provider, set.Version, flavor, kind}, "/"), func(t *testing.T) {
						compareWithClusterctl(t, path, set, flavor, assignments[kind])
					})
				}
			}
		}
	}
}

func compareWithClusterctl(t *testing.T, path string, set *clustertemplate.Set, flavor, value string) {
	g := NewWithT(t)
	got, gotErr := set.Generate(t.Context(), request(flavor), newVariables(t, set, flavor, value), nil)

	want, wantErr := clusterctlManifests(t.Context(), path, set, flavor, newVariables(t, set, flavor, value))
	if reason := corrections[set.Provider+"/"+flavor]; reason != "" {
		t.Skip(reason)
	}

	if wantErr != nil && strings.Contains(wantErr.Error(), noClassFile) && gotErr == nil {
		missing := slices.ContainsFunc(
			got.MissingClasses,
			func(c types.NamespacedName) bool { return strings.Contains(wantErr.Error(), strconv.Quote(c.String())) },
		)
		g.Expect(missing).
			NotTo(Equal(strings.Contains(string(got.YAML), "kind: ClusterClass\n")), "the class is either included or missing")

		want, wantErr = templateAlone(set, flavor, newVariables(t, set, flavor, value))
	}

	if wantErr != nil {
		g.Expect(gotErr).To(HaveOccurred(), "clusterctl fails with: %v", wantErr)
		return
	}

	g.Expect(gotErr).NotTo(HaveOccurred())
	g.Expect(string(got.YAML)).To(Equal(want))
}

// newVariables returns variables in which every required variable of a template has a value.
func newVariables(t *testing.T, set *clustertemplate.Set, flavor, value string) *clustertemplate.Variables {
	t.Helper()

	variables, err := clustertemplate.NewVariables("")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	required, err := set.Variables(request(flavor), variables)
	if err != nil {
		return variables // Generate and clusterctl both return this error
	}

	for _, v := range required {
		if v.Default == nil {
			variables.Set(v.Name, value)
		}
	}

	return variables
}

// configReader is a clusterctl configuration with variables and the provider's folder.
type configReader struct {
	*config.MemoryReader
	variables *clustertemplate.Variables
}

func (r configReader) Get(name string) (string, error) {
	if value, err := r.variables.Get(name); err == nil {
		return value, nil
	}

	return r.MemoryReader.Get(name)
}

func (r configReader) Set(name, value string) { r.variables.Set(name, value) }

// clusterctlManifests returns the output of `clusterctl generate cluster`.
func clusterctlManifests(
	ctx context.Context,
	path string,
	set *clustertemplate.Set,
	flavor string,
	variables *clustertemplate.Variables,
) (string, error) {
	name := strings.TrimPrefix(set.Provider, "infrastructure-")

	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}

	reader, err := config.NewMemoryReader().
		AddProvider(
			name,
			clusterctlv1.InfrastructureProviderType,
			"file://"+filepath.Join(absolute, "infrastructure-components.yaml"),
		)
	if err != nil {
		return "", err
	}

	configuration, err := config.New(ctx, "", config.InjectReader(configReader{reader, variables}))
	if err != nil {
		return "", err
	}

	clusterctl, err := client.New(ctx, "", client.InjectConfig(configuration))
	if err != nil {
		return "", err
	}

	r := request(flavor)

	template, err := clusterctl.GetClusterTemplate(ctx, client.GetClusterTemplateOptions{
		ProviderRepositorySource: &client.ProviderRepositorySourceOptions{
			InfrastructureProvider: name + ":" + set.Version,
			Flavor:                 flavor,
		},
		ClusterName:              r.Name,
		TargetNamespace:          r.Namespace,
		KubernetesVersion:        r.KubernetesVersion,
		ControlPlaneMachineCount: r.ControlPlaneMachines,
		WorkerMachineCount:       r.WorkerMachines,
	})
	if err != nil {
		return "", err
	}

	yaml, err := template.Yaml()

	return string(yaml), err
}

// templateAlone returns a template as clusterctl processes it, without further ClusterClasses.
func templateAlone(set *clustertemplate.Set, flavor string, variables *clustertemplate.Variables) (string, error) {
	i := slices.IndexFunc(set.Files, func(f bundle.File) bool {
		return f.Name == yamlprocessor.NewSimpleProcessor().GetTemplateName("", flavor)
	})

	r := request(flavor)
	for name, value := range map[string]string{
		"CLUSTER_NAME":                r.Name,
		"NAMESPACE":                   r.Namespace,
		"KUBERNETES_VERSION":          r.KubernetesVersion,
		"CONTROL_PLANE_MACHINE_COUNT": "1",
		"WORKER_MACHINE_COUNT":        "2",
	} {
		variables.Set(name, value)
	}

	template, err := repository.NewTemplate(repository.TemplateInput{
		RawArtifact:           set.Files[i].Data,
		ConfigVariablesClient: variables,
		Processor:             yamlprocessor.NewSimpleProcessor(),
		TargetNamespace:       r.Namespace,
	})
	if err != nil {
		return "", err
	}

	yaml, err := template.Yaml()

	return string(yaml), err
}

// providerFolders returns the samples and, if PROVIDERS is set, the real releases there.
func providerFolders(t *testing.T) []string {
	folders := []string{"testdata/infrastructure-sample"}

	more, err := testproviders.Glob(t, "infrastructure-*")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return append(folders, more...)
}
