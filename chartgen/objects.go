package chartgen

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// content is what a chart is generated from.
type content struct {
	bundle    *bundle.Bundle
	contract  string
	namespace string // the provider's default namespace
	crds      []crd

	// objects are the objects as published, and table describes those that the template renders.
	objects []chart.File
	table   []entry

	variables     []expr.Variable // sorted by name
	deployments   []Deployment
	images        []string // sorted
	requiredKinds []string // that neither Kubernetes nor the CRDs define, as Kind.version.group, sorted
}

// entry describes an object for the template.
type entry struct {
	File string `json:"file"`
	// Name by which values refer to the object: its own, with the defaults of variables.
	Name          string `json:"name"`
	ClusterScoped bool   `json:"clusterScoped,omitempty"`
	// Kind is what messages call an object with scalars.
	Kind    string          `json:"kind,omitempty"`
	Scalars []bundle.Scalar `json:"scalars,omitempty"`
	// SinglePod is why a Deployment cannot run two pods.
	SinglePod string `json:"singlePod,omitempty"`
	// HasBudget is set if a Deployment is published with a PodDisruptionBudget.
	HasBudget bool `json:"hasBudget,omitempty"`
}

// Bounds of the objects of a provider, without CRDs. Most real ones have 150 KB, 5,000 values and 70 expressions; the
// largest have 1.5 MB.
const (
	maxObjects     = 4 << 20 // bytes
	maxValues      = 30000
	maxExpressions = 1000
	// maxWritten is their size with values of variables, as Helm writes them, in bytes.
	maxWritten = limit.MaxText
)

// addObjects adds all objects but CRDs.
func (c *content) addObjects(components *bundle.Components) error {
	size, values, expressions, written := 0, 0, 0, 0

	scopes := bundle.Scopes{}
	for _, crd := range c.crds {
		scopes.Add(crd.object)
	}

	variables := map[string]expr.Variable{}
	budgets := budgetsOf(components)

	var kinds []schema.GroupVersionKind

	files := documentsByFile(components)

	// The chart is the same whatever order the objects were published in.
	for _, name := range slices.Sorted(maps.Keys(files)) {
		doc := files[name]

		count, err := checkDocument(doc)
		if err != nil {
			return err
		}

		size += len(doc.Source)
		values += count
		expressions += len(doc.Text.Expressions())
		written += limit.Written(doc.Object.Object)

		if size > maxObjects || values > maxValues || expressions > maxExpressions {
			return invalid(doc, fmt.Errorf("the objects up to here are larger than %d MiB, or have more than %d values or %d "+
				"expressions", maxObjects>>20, maxValues, maxExpressions))
		}

		if written > maxWritten {
			return invalid(doc, fmt.Errorf("the objects up to here are larger than %d MiB once all lines are indented; "+
				"make them less deep", maxWritten>>20))
		}

		for _, v := range doc.Text.Variables() {
			if err := addVariable(variables, v); err != nil {
				return invalid(doc, err)
			}
		}

		text := strings.TrimSuffix(doc.Source, "\n") + "\n"
		c.objects = append(c.objects, chart.File{Name: name, Data: []byte(text)})

		if doc.IsNamespace() {
			continue // the namespace of a release is the installer's decision
		}

		kind := doc.Object.GroupVersionKind()
		kinds = append(kinds, kind)
		e := entry{
			File: name, Name: doc.Object.GetName(), ClusterScoped: !scopes.Namespaced(kind.GroupKind()), Scalars: doc.Scalars,
		}

		if e.Scalars != nil {
			e.Kind = kind.Kind
		}

		if d, isDeployment := deploymentOf(doc.Object); isDeployment {
			c.deployments = append(c.deployments, d)
			e.SinglePod, e.HasBudget = singlePod(d.Spec), budgets.cover(d.Name, d.Spec)
		}

		c.table = append(c.table, e)
		c.images = append(c.images, bundle.Images(doc.Object.Object)...)
	}

	slices.Sort(c.images)
	c.images = slices.Compact(c.images)
	c.requiredKinds = scopes.RequiredKinds(kinds)

	for _, name := range slices.Sorted(maps.Keys(variables)) {
		c.variables = append(c.variables, variables[name])
	}

	return nil
}

// documentsByFile returns the objects of components but their CRDs, by the names of their files.
func documentsByFile(components *bundle.Components) map[string]*bundle.Document {
	names, files := map[string]int{}, map[string]*bundle.Document{}

	for i := range components.Documents {
		if doc := &components.Documents[i]; !doc.IsCRD() {
			files[fileName(names, doc.Object)] = doc
		}
	}

	return files
}

// addVariable adds the uses of a variable in an object.
func addVariable(variables map[string]expr.Variable, v expr.Variable) error {
	known, used := variables[v.Name]
	if used && known.Required != v.Required {
		return fmt.Errorf("the variable %s has a default in one place and none in another; give it one everywhere", v.Name)
	}

	for _, word := range v.Defaults {
		if !slices.Contains(known.Defaults, word) {
			known.Defaults = append(known.Defaults, word)
		}
	}

	known.Name, known.Required = v.Name, v.Required
	variables[v.Name] = known

	return nil
}

// invalid returns the error for a document of the components.
func invalid(doc *bundle.Document, err error) error {
	return &bundle.InvalidError{
		File: bundle.ComponentsFile, Line: doc.Line, Reason: fmt.Sprintf("%s: %v", doc, err), Err: err,
	}
}

var notInFileName = regexp.MustCompile(`[^a-z0-9.-]+`)

// fileName returns the name of an object's file, such as objects/deployment-manager.yaml, which no other one has. A
// digest replaces the end of a long name: objects may have names of 253 characters.
func fileName(names map[string]int, object *unstructured.Unstructured) string {
	const (
		maxLength = 80
		digits    = 12
	)

	name := notInFileName.ReplaceAllString(strings.ToLower(object.GetKind()+"-"+object.GetName()), "-")
	if len(name) > maxLength {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxLength-digits-1] + "-" + hex.EncodeToString(sum[:])[:digits]
	}

	for names[name]++; names[name] > 1; names[name]++ {
		name = fmt.Sprintf("%s-%d", name, names[name])
	}

	return objectsFolder + name + ".yaml"
}

// Deployment is a Deployment as published.
type Deployment struct {
	Name string
	// Containers are the names of containers and init containers, sorted.
	Containers []string
	// Labeled reports whether it was published with the provider's label.
	Labeled bool
	Spec    map[string]any
}

// deploymentOf returns the Deployment in an object.
func deploymentOf(object *unstructured.Unstructured) (Deployment, bool) {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apps", Kind: "Deployment"}) {
		return Deployment{}, false
	}

	_, labeled := object.GetLabels()[v1alpha2.ClusterctlProviderLabel]
	d := Deployment{Name: object.GetName(), Labeled: labeled, Spec: bundle.NestedMap(object.Object, "spec")}

	for _, container := range bundle.Containers(object.Object) {
		d.Containers = append(d.Containers, fmt.Sprint(container["name"]))
	}

	slices.Sort(d.Containers)
	d.Containers = slices.Compact(d.Containers)

	return d, true
}

// documents returns the objects of a kind in a chart, as they were published.
func documents(c *chart.Chart, kind string) ([]*bundle.Document, error) {
	var found []*bundle.Document

	for _, f := range c.Files {
		if !strings.HasPrefix(f.Name, objectsFolder+kind+"-") {
			continue
		}

		components, err := bundle.ParseComponents(f.Data)
		if err != nil {
			return nil, fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, f.Name, err)
		}

		found = append(found, &components.Documents[0])
	}

	return found, nil
}

// Deployments returns the Deployments of a chart as they were published, with the defaults of variables.
func Deployments(c *chart.Chart) ([]Deployment, error) {
	docs, err := documents(c, "deployment")
	if err != nil {
		return nil, err
	}

	var found []Deployment

	for _, doc := range docs {
		if d, isDeployment := deploymentOf(doc.Object); isDeployment {
			found = append(found, d)
		}
	}

	return found, nil
}

// tableOf returns the table of a chart that Build returned, which can be read.
func tableOf(c *chart.Chart) []entry {
	var table []entry

	_ = json.Unmarshal(c.File(tableFile), &table)

	return table
}

// VariableUses returns how often the objects of a chart use each variable, by its name.
func VariableUses(c *chart.Chart) map[string]int {
	uses := map[string]int{}

	for _, e := range tableOf(c) {
		for _, s := range e.Scalars {
			addUses(uses, s.Written, 1, s.Expressions)
		}
	}

	return uses
}

// VariablesOf returns the names of the variables that an object of a chart has, sorted.
func VariablesOf(c *chart.Chart, kind, name string) []string {
	uses := map[string]int{}

	for _, e := range tableOf(c) {
		if e.Kind != kind || e.Name != name {
			continue
		}

		for _, s := range e.Scalars {
			addUses(uses, s.Written, 1, s.Expressions)
		}
	}

	return slices.Sorted(maps.Keys(uses))
}

// Prefixes returns, by the name of the variable, the prefix of its value that the chart's objects replace.
func Prefixes(c *chart.Chart) map[string]string {
	prefixes := map[string]string{}

	for _, e := range tableOf(c) {
		for _, s := range e.Scalars {
			for _, expression := range s.Expressions {
				if expression.Prefix != "" {
					prefixes[expression.Name] = expression.Prefix
				}
			}
		}
	}

	return prefixes
}

// DeploymentUses returns how many Deployments of a chart have each name: there may be several, in other namespaces.
func DeploymentUses(c *chart.Chart) map[string]int {
	uses := map[string]int{}

	for _, e := range tableOf(c) {
		if strings.HasPrefix(e.File, objectsFolder+"deployment-") {
			uses[e.Name]++
		}
	}

	return uses
}

// addUses adds the uses of variables in a text that is used several times, and in defaults.
func addUses(uses map[string]int, text string, times int, expressions map[string]expr.Expression) {
	for written, expression := range expressions {
		n := times * strings.Count(text, written)
		uses[expression.Name] += n

		addUses(uses, expression.Default, n, expression.Expressions)
	}
}

// CheckWritten returns an error if rendering the chart's objects with these values would take much memory: a short
// value may expand to a list or to many indented lines.
func CheckWritten(c *chart.Chart, variables map[string]string) error {
	budget := limit.NewBudget(maxWritten, limit.MaxDocumentValues)
	written := 0

	for _, e := range tableOf(c) {
		if len(e.Scalars) == 0 {
			continue
		}

		components, err := bundle.ParseComponents(c.File(e.File))
		if err != nil {
			return fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, e.File, err)
		}

		doc := &components.Documents[0]
		content, err := doc.Decode(variables, budget)

		exceeded := (*limit.Error)(nil)
		if errors.As(err, &exceeded) {
			return fmt.Errorf("%s: %w", doc, err)
		}

		if err != nil {
			continue // the template says what is wrong
		}

		if err := limit.Depth(content); err != nil {
			return fmt.Errorf("%s: with the values of its variables, it %w", doc, err)
		}

		if written += limit.Written(content); written > maxWritten {
			return fmt.Errorf("%s: with the values of variables, the objects up to here are larger than %d MiB once all lines "+
				"are indented; shorten them", doc, maxWritten>>20)
		}
	}

	return nil
}

// Namespace returns the labels and annotations that the namespace of a chart's release should have with
// the given values. It leaves out the labels that identify the provider for clusterctl, because
// several providers may share a namespace, and annotations for Helm, of whose release it is no part. Errors
// contain no values.
func Namespace(c *chart.Chart, values map[string]any) (labels, annotations map[string]string, err error) {
	docs, err := documents(c, "namespace")
	if err != nil {
		return nil, nil, err
	}

	for _, doc := range docs {
		if !doc.IsNamespace() {
			continue
		}

		if labels, annotations, err = namespaceMetadata(doc, values); err != nil {
			return nil, nil, fmt.Errorf("chart %s: the provider's Namespace: %w", c.Metadata.Name, err)
		}
	}

	return labels, annotations, nil
}

// namespaceMetadata returns the labels and annotations of a Namespace. A variable that is not set is empty: the schema
// of the chart requires those without a default.
func namespaceMetadata(
	doc *bundle.Document, values map[string]any,
) (labels, annotations map[string]string, err error) {
	given, _ := values["variables"].(map[string]any)
	variables := map[string]string{}

	for _, v := range doc.Text.Variables() {
		variables[v.Name], _ = given[v.Name].(string)
	}

	content, err := doc.Decode(variables, limit.NewFile())
	if err != nil {
		return nil, nil, err
	}

	namespace := &unstructured.Unstructured{Object: content}
	labels, annotations = namespace.GetLabels(), namespace.GetAnnotations()

	delete(labels, v1alpha2.ClusterctlLabel)
	delete(labels, v1alpha2.ClusterctlProviderLabel)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return bundle.IsHelmAnnotation(key) })

	return labels, annotations, nil
}

// checkDocument returns the number of values in an object. It returns an error if the template would not render the
// object as it was published, or clusterctl would refuse it, whatever the values of variables are.
func checkDocument(doc *bundle.Document) (count int, err error) {
	switch {
	case strings.ContainsRune(doc.Source, '\ufeff'):
		return 0, invalid(doc, errors.New("it contains a byte order mark, which parsers of YAML read differently; remove it"))
	case strings.Contains(doc.Source, "<no value>"):
		return 0, invalid(doc, errors.New("it contains the words <no value>, which Helm removes; use others"))
	}

	if count, err = checkValue(doc.Object.Object); err != nil {
		return 0, invalid(doc, err)
	}

	if !bundle.NeedsCanonicalImages(doc.Object.Object) {
		return count, nil
	}

	marked := bundle.Containers(doc.Marked())

	for i, container := range bundle.Containers(doc.Object.Object) {
		image, _ := container["image"].(string)

		if i < len(marked) && bundle.IsMarked(bundle.NestedString(marked[i], "image")) {
			continue // the template checks images that depend on variables
		}

		if bundle.IsCanonicalImage(image) {
			continue
		}

		return 0, invalid(doc, fmt.Errorf("the image %q of the container %q is not a canonical name, as clusterctl "+
			"requires; write it with its registry and path, for example docker.io/library/nginx:1.29", image, container["name"]))
	}

	return count, nil
}

// checkValue returns the number of values in a part of an object, and an error if Helm would change one.
func checkValue(value any) (int, error) {
	const exact = 1 << 53 // larger numbers lose digits

	total := 1

	switch value := value.(type) {
	case int64:
		if value > exact || value < -exact {
			return 0, fmt.Errorf("the number %d has more digits than Helm keeps; put it in quotes", value)
		}
	case []any:
		for _, item := range value {
			count, err := checkValue(item)
			if err != nil {
				return 0, err
			}

			total += count
		}
	case map[string]any:
		for key, child := range value {
			if key == "<<" {
				return 0, errors.New("the key << is not supported in a chart; write the keys that it merges")
			}

			count, err := checkValue(child)
			if err != nil {
				return 0, err
			}

			total += count
		}
	}

	return total, nil
}
