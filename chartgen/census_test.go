package chartgen_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/util/version"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/contract/lint"
	"github.com/capstan-project/capstan/test/bed/tools"
)

// TestCensus builds, lints, compares with clusterctl and renders each release in the folder CENSUS, prints a table, and
// fails for what differs without a rule. `make census` runs it.
func TestCensus(t *testing.T) {
	folder := os.Getenv("CENSUS")
	if folder == "" {
		t.Skip("CENSUS is not set to a folder of provider releases: `make census` sets it")
	}

	set, err := tools.Find()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	providers, err := filepath.Glob(filepath.Join(folder, "*", "v*"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(providers).NotTo(BeEmpty())

	for i := range providers {
		providers[i] = filepath.Dir(providers[i])
	}

	var (
		lock sync.Mutex
		rows []*examined
	)

	t.Run("release", func(t *testing.T) {
		forEachReleaseIn(t, slices.Compact(providers), func(t *testing.T, b *bundle.Bundle) {
			e := &examined{Bundle: b, rules: map[string]int{}}
			e.examine(t.Context(), set, t.TempDir())

			for _, problem := range e.problems {
				t.Error(problem)
			}

			lock.Lock()
			defer lock.Unlock()

			rows = append(rows, e)
		})
	})

	printCensus(rows)
}

// examined is what was found about a release.
type examined struct {
	*bundle.Bundle

	contract, built, helm string
	findings              []contract.Finding
	// equal and refused count the kinds of values for which clusterctl and the chart have the same objects, and which
	// both refuse.
	equal, refused int
	// rules count the kinds of values for which a rule explains a difference.
	rules map[string]int
	// problems are the differences that no rule explains.
	problems []string
}

// printCensus prints a row for each release, and the numbers.
func printCensus(rows []*examined) {
	slices.SortFunc(rows, func(a, b *examined) int {
		if byLabel := strings.Compare(a.Provider.Label, b.Provider.Label); byLabel != 0 {
			return byLabel
		}

		return semver.Compare(a.Version, b.Version)
	})

	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROVIDER\tVERSION\tCONTRACT\tCHART\tLINT\tEQUAL\tREFUSED\tHELM 3, 4\tRULES")

	unexplained := 0

	for _, e := range rows {
		if len(e.problems) > 0 {
			unexplained++
		}

		rules := slices.Sorted(maps.Keys(e.rules))
		for i, rule := range rules {
			rules[i] = fmt.Sprintf("%s (%d)", rule, e.rules[rule])
		}

		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d/%d/%d\t%d\t%d\t%s\t%s\n", e.Provider.Label, e.Version, e.contract, e.built,
			contract.Count(e.findings, contract.Error), contract.Count(e.findings, contract.Warning),
			contract.Count(e.findings, contract.Info), e.equal, e.refused, e.helm, strings.Join(rules, ", "))
	}

	_ = table.Flush()

	fmt.Printf("%d releases, %d of them with a difference that no rule explains\n", len(rows), unexplained)
}

func (e *examined) problem(format string, args ...any) {
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
}

func (e *examined) examine(ctx context.Context, set *tools.Set, home string) {
	e.findings = lint.Bundle(e.Bundle, nil)

	built, err := e.build(ctx)
	if err != nil {
		return
	}

	required, all, err := chartgen.RequiredVariables(built)
	if err != nil {
		e.problem("variables: %v", err)
		return
	}

	defaults := e.requiredValues(ctx, required)
	e.compare(ctx, "defaults", built, defaults)
	e.render(ctx, set, home, built, defaults)

	// CRDs do not depend on the variables, so comparing them once is enough.
	scopes := clusterScopes(e.Components)
	e.Components = withoutCRDs(e.Components)
	built = &chart.Chart{Metadata: built.Metadata, Files: built.Files}

	for _, kind := range slices.Sorted(maps.Keys(assignments)) {
		if len(all) == 0 {
			break
		}

		variables := map[string]string{}
		for _, name := range all {
			variables[name] = assignments[kind](name)
		}

		e.compare(ctx, kind, built, variables, scopes...)
	}
}

// build builds the chart. A release without its series in metadata.yaml is built as if it had one, after clusterctl has
// refused it, too.
func (e *examined) build(ctx context.Context) (*chart.Chart, error) {
	series, refusal := clusterctlSeries(ctx, e.Bundle)

	built, err := chartgen.Build(e.Bundle)
	if err != nil && refusal != nil {
		e.rules["clusterctl refuses metadata.yaml, too"]++
		v := version.MustParseSemantic(e.Version)
		e.Metadata = fmt.Appendf(nil,
			"apiVersion: %s\nkind: Metadata\nreleaseSeries: [{major: %d, minor: %d, contract: v1beta1}]\n",
			clusterctlv1.GroupVersion, v.Major(), v.Minor())
		built, err = chartgen.Build(e.Bundle)
	} else if err == nil && refusal != nil {
		e.problem("only clusterctl refuses metadata.yaml: %v", refusal)
	}

	e.built = "built"
	if refusal == nil {
		e.contract = series.Contract
	}

	if err == nil {
		return built, nil
	}

	e.built = "refused"

	if _, wantErr := clusterctlObjects(ctx, e.Bundle, nil); wantErr != nil {
		e.rules["clusterctl refuses the components, too"]++
	} else {
		e.problem("only the chart is refused: %v", err)
	}

	return nil, err
}

// clusterctlSeries returns the release series of a version, or why clusterctl does not install it.
func clusterctlSeries(ctx context.Context, b *bundle.Bundle) (*clusterctlv1.ReleaseSeries, error) {
	client, err := config.New(ctx, "", config.InjectReader(config.NewMemoryReader()))
	if err != nil {
		return nil, err
	}

	published := repository.NewMemoryRepository().WithPaths("", bundle.ComponentsFile).WithDefaultVersion(b.Version).
		WithVersions(b.Version).WithFile(b.Version, bundle.MetadataFile, b.Metadata)
	provider := config.NewProvider(b.Provider.Name, "https://example.com/none", clusterctlv1.ProviderType(b.Provider.Type))

	from, err := repository.New(ctx, provider, client, repository.InjectRepository(published))
	if err != nil {
		return nil, err
	}

	metadata, err := from.Metadata(b.Version).Get(ctx)
	if err != nil {
		return nil, err
	}

	series := metadata.GetReleaseSeriesForVersion(version.MustParseSemantic(b.Version))
	if series == nil {
		err = errors.New("no release series")
	}

	return series, err
}

// requiredValues returns the first values for the required variables that clusterctl accepts: some providers want an
// image or a number.
func (e *examined) requiredValues(ctx context.Context, required []string) map[string]string {
	var values map[string]string

	for _, value := range []string{"cmVxdWlyZWQ=", "registry.example.com/value:v1", "1"} {
		values = map[string]string{}
		for _, name := range required {
			values[name] = value
		}

		if _, err := clusterctlObjects(ctx, e.Bundle, values); err == nil {
			break
		}
	}

	return values
}

// compare compares the chart with clusterctl. What a rule explains is counted.
func (e *examined) compare(
	ctx context.Context, kind string, built *chart.Chart, values map[string]string, clusterScoped ...string,
) {
	c := compare(ctx, e.Bundle, built, values)

	if removeNamespaces(c.want, append(clusterScoped, clusterScopes(e.Components)...)) {
		e.rules["clusterctl sets a namespace on a cluster-scoped object"]++
	}

	switch found := c.differences(); {
	case len(found) > 0:
		e.problem("%s: %s", kind, strings.Join(found, "\n"))
	case c.wantErr != nil:
		e.refused++
	default:
		e.equal++
	}
}

// newerKinds are cluster-scoped kinds that clusterctl does not know as such.
var newerKinds = []string{
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "ClusterIssuer",
}

// clusterScopes returns the cluster-scoped kinds of the CRDs in components.
func clusterScopes(components []byte) []string {
	var kinds []string

	objects, _ := utilyaml.ToUnstructured(components) // other objects may be no YAML without values
	for _, o := range objects {
		spec, _ := o.Object["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)

		if kind, _ := names["kind"].(string); o.GetKind() == "CustomResourceDefinition" && spec["scope"] == "Cluster" {
			kinds = append(kinds, kind)
		}
	}

	return kinds
}

// removeNamespaces removes the namespace from objects of cluster-scoped kinds, and reports whether there are any.
func removeNamespaces(objects map[string]string, kinds []string) bool {
	kinds, removed := append(kinds, newerKinds...), false

	for name, text := range maps.Clone(objects) {
		gvk, rest, _ := strings.Cut(name, " "+targetNamespace+"/")
		if _, kind, _ := strings.Cut(gvk, "Kind="); rest == "" || !slices.Contains(kinds, kind) {
			continue
		}

		object, _ := fromJSON(text).(map[string]any)
		delete(object["metadata"].(map[string]any), "namespace")

		corrected, _ := json.Marshal(object)

		delete(objects, name)
		objects[gvk+" /"+rest] = string(corrected)
		removed = true
	}

	return removed
}

// render lints and renders the chart with both versions of Helm.
func (e *examined) render(
	ctx context.Context, set *tools.Set, home string, built *chart.Chart, values map[string]string,
) {
	packed, err := built.Archive()
	if err != nil {
		e.problem("archive: %v", err)
		return
	}

	file := filepath.Join(home, built.Filename())
	if err := os.WriteFile(file, packed, 0o600); err != nil {
		e.problem("write: %v", err)
		return
	}

	var given []string
	for name, value := range values {
		given = append(given, "--set-string", "variables."+name+"="+value)
	}

	var rendered []map[string]string

	for _, program := range []string{tools.Helm3, tools.Helm4} {
		helm := set.Program(program)

		_, err := runHelm(ctx, helm, home, append(given, "lint", file)...)
		if err != nil {
			e.problem("%v", err)
			return
		}

		out, err := runHelm(ctx, helm, home, append(
			given, "template", "release", file, "--include-crds", "--namespace", targetNamespace)...)
		if err != nil {
			e.problem("%v", err)
			return
		}

		objects, err := utilyaml.ToUnstructured([]byte(out))
		if err != nil {
			e.problem("%s: %v", helm, err)
			return
		}

		byName, err := index(objects)
		if err != nil {
			e.problem("%s: %v", helm, err)
			return
		}

		rendered = append(rendered, byName)
	}

	e.helm = "same"

	if diff := cmp.Diff(rendered[0], rendered[1]); diff != "" {
		e.problem("Helm 3 and 4 render different objects (- 3, + 4):\n%s", diff)
	}
}
