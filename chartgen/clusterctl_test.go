package chartgen_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	yamlprocessor "sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/test/testproviders"
)

const targetNamespace = "target-namespace"

// TestEqualToClusterctl: for any values of the variables, Helm renders from the chart the same
// objects that clusterctl's library generates from the same components.
func TestEqualToClusterctl(t *testing.T) {
	forEachRelease(t, compareWithClusterctl)
}

// forEachRelease tests all releases of all providers in parallel.
func forEachRelease(t *testing.T, test func(*testing.T, *bundle.Bundle)) {
	t.Helper()
	forEachReleaseIn(t, providerFolders(t), test)
}

// forEachReleaseIn tests all releases in the folders of providers in parallel.
func forEachReleaseIn(t *testing.T, folders []string, test func(*testing.T, *bundle.Bundle)) {
	t.Helper()

	for _, folder := range folders {
		directory, err := source.NewDirectory(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		releases, err := directory.Versions(t.Context())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for _, release := range releases {
			t.Run(filepath.Base(folder)+"/"+release.Name, func(t *testing.T) {
				t.Parallel()

				published, err := directory.Fetch(t.Context(), release)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				test(t, published.Bundle)
			})
		}
	}
}

// providerFolders returns the folders of the project's sample providers and, if PROVIDERS is set,
// of the real providers there.
func providerFolders(t *testing.T) []string {
	folders, err := filepath.Glob("../test/data/providers/*")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(folders).NotTo(BeEmpty())

	more, err := testproviders.Glob(t, "*")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	folders = append(folders, more...)

	return slices.DeleteFunc(folders, func(f string) bool { info, err := os.Stat(f); return err != nil || !info.IsDir() })
}

// assignments are the values that are given to all variables, by what they test.
var assignments = map[string]func(name string) string{
	"plain":        func(name string) string { return "value-of-" + strings.ToLower(strings.ReplaceAll(name, "_", "-")) },
	"empty":        func(string) string { return "" },
	"boolean":      func(string) string { return "true" },
	"number":       func(string) string { return "1000000" },
	"quote":        func(string) string { return `it's "quoted"` },
	"colon":        func(string) string { return "key: value" },
	"newline":      func(string) string { return "first\nsecond" },
	"indented":     func(string) string { return "\n      injected: yes" },
	"template":     func(string) string { return `{{ fail "rendered" }}` },
	"dollar":       func(string) string { return "$HOME ${HOME} $$ $1" },
	"unicode":      func(string) string { return "größe→✓" },
	"backslash":    func(string) string { return `C:\path\n` },
	"yaml special": func(string) string { return "- *anchor & | > % @ `" },
}

func compareWithClusterctl(t *testing.T, b *bundle.Bundle) {
	g := NewWithT(t)
	built, err := chartgen.Build(b)
	g.Expect(err).NotTo(HaveOccurred())
	required, all, err := chartgen.RequiredVariables(built)
	g.Expect(err).NotTo(HaveOccurred())

	defaults := map[string]string{}
	for _, name := range required {
		defaults[name] = "cmVxdWlyZWQ="
	}

	compareOnce(t, "defaults", b, built, defaults)

	// CRDs do not depend on the variables, so comparing them once is enough.
	b.Components = withoutCRDs(b.Components)
	built = &chart.Chart{Metadata: built.Metadata, Files: built.Files}

	for _, kind := range slices.Sorted(maps.Keys(assignments)) {
		variables := map[string]string{}
		for _, name := range all {
			variables[name] = assignments[kind](name)
		}

		compareOnce(t, kind, b, built, variables)
	}
}

func withoutCRDs(components []byte) []byte {
	documents := bytes.Split(components, []byte("\n---\n"))
	documents = slices.DeleteFunc(
		documents,
		func(d []byte) bool { return bytes.Contains(d, []byte("\nkind: CustomResourceDefinition")) },
	)

	return bytes.Join(documents, []byte("\n---\n"))
}

func compareOnce(t *testing.T, kind string, b *bundle.Bundle, built *chart.Chart, variables map[string]string) {
	t.Helper()
	NewWithT(t).Expect(compare(t.Context(), b, built, variables).differences()).To(BeEmpty(), kind)
}

// comparison is what clusterctl and a chart do with the same values: objects in JSON by kind, namespace and name, or an
// error.
type comparison struct {
	want, got       map[string]string
	wantErr, gotErr error
}

func compare(ctx context.Context, b *bundle.Bundle, built *chart.Chart, variables map[string]string) comparison {
	var c comparison

	c.want, c.wantErr = clusterctlObjects(ctx, b, variables)
	c.got, c.gotErr = chartObjects(built, variables)

	return c
}

// differences describes what differs, one text for an object. There is none if both refuse the values.
func (c comparison) differences() []string {
	switch {
	case c.wantErr != nil && c.gotErr != nil:
		return nil
	case c.wantErr != nil:
		return []string{"only clusterctl fails: " + c.wantErr.Error()}
	case c.gotErr != nil:
		return []string{"only the chart fails: " + c.gotErr.Error()}
	}

	names := maps.Clone(c.want)
	maps.Copy(names, c.got)

	var found []string

	for _, name := range slices.Sorted(maps.Keys(names)) {
		if diff := cmp.Diff(fromJSON(c.want[name]), fromJSON(c.got[name])); diff != "" {
			found = append(found, fmt.Sprintf("%s (- clusterctl, + chart):\n%s", name, diff))
		}
	}

	return found
}

// fromJSON returns the object of a text in JSON, and nil for an empty text.
func fromJSON(text string) any {
	var object any

	_ = json.Unmarshal([]byte(text), &object) // of json.Marshal

	return object
}

// clusterctlObjects returns the objects that clusterctl would apply, except the Namespace, as JSON
// by kind, namespace, and name.
func clusterctlObjects(ctx context.Context, b *bundle.Bundle, variables map[string]string) (map[string]string, error) {
	objects, err := clusterctlComponents(ctx, b, variables)
	if err != nil {
		return nil, err
	}

	for i := range objects {
		leaveToOthers(&objects[i])
	}

	return index(objects)
}

// leaveToOthers removes from an object of clusterctl's what a chart leaves out, because others fill it in: what the API
// server sets, owners, the rules of an aggregated ClusterRole, the stringData of a Secret, and the CAs of webhooks.
func leaveToOthers(o *unstructured.Unstructured) {
	for _, field := range []string{
		"deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "ownerReferences",
		"resourceVersion", "selfLink", "uid",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}

	texts, _, _ := unstructured.NestedMap(o.Object, "stringData")
	_, aggregated := o.Object["aggregationRule"]

	switch {
	case o.GetKind() == "ClusterRole" && aggregated:
		delete(o.Object, "rules")
	case o.GetKind() == "Secret" && texts != nil:
		data, _, _ := unstructured.NestedMap(o.Object, "data")
		if data == nil {
			data = map[string]any{}
		}

		for key, value := range texts {
			if text, isText := value.(string); isText {
				data[key] = base64.StdEncoding.EncodeToString([]byte(text))

				delete(texts, key)
			}
		}

		o.Object["data"], o.Object["stringData"] = data, texts

		if len(texts) == 0 {
			delete(o.Object, "stringData")
		}
	}

	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, webhook := range webhooks {
		unstructured.RemoveNestedField(webhook.(map[string]any), "clientConfig", "caBundle")
	}

	if webhooks != nil {
		o.Object["webhooks"] = webhooks
	}
}

// clusterctlComponents returns the objects that clusterctl would apply.
func clusterctlComponents(
	ctx context.Context, b *bundle.Bundle, variables map[string]string,
) ([]unstructured.Unstructured, error) {
	reader := config.NewMemoryReader()
	for name, value := range variables {
		reader.Set(name, value)
	}

	client, err := config.New(ctx, "", config.InjectReader(reader))
	if err != nil {
		return nil, err
	}

	components, err := repository.NewComponents(repository.ComponentsInput{
		Provider: config.NewProvider(
			b.Provider.Name,
			"https://example.com/none",
			clusterctlv1.ProviderType(b.Provider.Type),
		),
		ConfigClient: client,
		Processor:    yamlprocessor.NewSimpleProcessor(),
		RawYaml:      b.Components,
		Options:      repository.ComponentsOptions{Version: b.Version, TargetNamespace: targetNamespace},
	})
	if err != nil {
		return nil, err
	}

	return components.Objs(), nil
}

// chartObjects returns the objects of the rendered chart and its CRDs.
func chartObjects(c *chart.Chart, variables map[string]string) (map[string]string, error) {
	rendered, err := renderChart(c, variables)
	if err != nil {
		return nil, err
	}

	var documents [][]byte

	for name, content := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			documents = append(documents, []byte(strings.TrimSpace(content)+"\n")) // as Helm does
		}
	}

	for _, crd := range c.CRDs {
		documents = append(documents, crd.Data)
	}

	objects, err := utilyaml.ToUnstructured(bytes.Join(documents, []byte("---\n")))
	if err != nil {
		return nil, err
	}

	return index(objects)
}

// renderChart renders the chart like `helm template --namespace target-namespace`, including the
// validation of the values.
func renderChart(c *chart.Chart, variables map[string]string) (map[string]string, error) {
	loaded, err := loadChart(c)
	if err != nil {
		return nil, err
	}

	chosen := map[string]any{}
	for name, value := range variables {
		chosen[name] = value
	}

	values, err := chartutil.ToRenderValues(
		loaded,
		map[string]any{"variables": chosen},
		chartutil.ReleaseOptions{
			Name:      c.Metadata.Name,
			Namespace: targetNamespace,
			Revision:  1,
			IsInstall: true,
		},
		chartutil.DefaultCapabilities,
	)
	if err != nil {
		return nil, err
	}

	return engine.Render(loaded, values)
}

func loadChart(c *chart.Chart) (*helmchart.Chart, error) {
	archive, err := c.Archive()
	if err != nil {
		return nil, err
	}

	return loader.LoadArchive(bytes.NewReader(archive))
}

// index normalizes objects and returns them by kind, namespace, and name.
func index(objects []unstructured.Unstructured) (map[string]string, error) {
	byName := map[string]string{}

	for _, o := range objects {
		if o.GetKind() == "Namespace" {
			continue
		}

		name := fmt.Sprintf("%s %s/%s", o.GroupVersionKind(), o.GetNamespace(), o.GetName())
		if _, twice := byName[name]; twice {
			return nil, fmt.Errorf("%s exists twice", name)
		}

		if o.GetKind() == "CustomResourceDefinition" {
			// Helm does not render CRDs, so their references are changed when they are applied.
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "cert-manager.io/inject-ca-from")
			unstructured.RemoveNestedField(o.Object, "spec", "conversion", "webhook", "clientConfig", "service", "namespace")
			unstructured.RemoveNestedField(o.Object, "status")
		}

		if err := throughTypes(&o); err != nil {
			return nil, err
		}

		data, err := json.Marshal(withoutNulls(o.Object))
		if err != nil {
			return nil, err
		}

		byName[name] = string(data)
	}

	return byName, nil
}

// converted are the kinds that clusterctl converts to Go types and back, which adds empty fields.
var converted = map[string]func() any{
	"ClusterRoleBinding":             func() any { return &rbacv1.ClusterRoleBinding{} },
	"CustomResourceDefinition":       func() any { return &apiextensionsv1.CustomResourceDefinition{} },
	"DaemonSet":                      func() any { return &appsv1.DaemonSet{} },
	"Deployment":                     func() any { return &appsv1.Deployment{} },
	"MutatingWebhookConfiguration":   func() any { return &admissionregistrationv1.MutatingWebhookConfiguration{} },
	"RoleBinding":                    func() any { return &rbacv1.RoleBinding{} },
	"ValidatingWebhookConfiguration": func() any { return &admissionregistrationv1.ValidatingWebhookConfiguration{} },
}

// throughTypes converts an object to its Go type and back, as clusterctl does.
func throughTypes(o *unstructured.Unstructured) error {
	newObject := converted[o.GetKind()]
	if newObject == nil {
		return nil
	}

	object := newObject()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, object); err != nil {
		return err
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	o.Object = content

	return err
}

// withoutNulls removes nulls: clusterctl's Go types set some fields to null, and the API server
// ignores them.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}

		for key, child := range value {
			if child = withoutNulls(child); child != nil {
				kept[key] = child
			}
		}

		return kept
	case []any:
		kept := make([]any, len(value))
		for i, child := range value {
			kept[i] = withoutNulls(child)
		}

		return kept
	default:
		return value
	}
}
