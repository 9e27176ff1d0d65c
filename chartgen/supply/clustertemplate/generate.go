package clustertemplate

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// Manifests are the objects of a workload cluster.
type Manifests struct {
	// YAML holds the objects, ClusterClasses before the Cluster, without a newline at the end.
	YAML []byte
	// MissingClasses are the ClusterClasses that the Cluster needs and that are neither in its
	// template nor in the set. They must exist in the management cluster, which could not be asked.
	MissingClasses []types.NamespacedName
}

// Generate generates the manifests of the requested cluster. The ClusterClass of its topology is
// included unless it is in the template or in the management cluster. Management may be nil if there is
// no management cluster to ask.
//
// The error is a *source.NotFoundError for a missing flavor or class, a *MissingVariablesError, or a
// *bundle.InvalidError for a file that is invalid, or becomes so with the values of the variables. No
// error contains such values, except for those that are used as names of objects.
func (s *Set) Generate(
	ctx context.Context,
	r Request,
	variables config.VariablesClient,
	management client.Client,
) (*Manifests, error) {
	if err := r.apply(variables); err != nil {
		return nil, err
	}

	file, err := s.template(r.Flavor)
	if err != nil {
		return nil, err
	}

	template, err := s.process(file, r.Namespace, variables)
	if err != nil {
		return nil, err
	}

	keys, err := missingClasses(template.Objs())
	if err != nil {
		return nil, s.invalid(file, 0, err.Error())
	}

	classes, missing, err := s.classes(ctx, keys, variables, management)
	if err != nil {
		return nil, err
	}

	merged, err := repository.MergeTemplates(append(classes, template)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}

	yaml, err := merged.Yaml()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}

	return &Manifests{YAML: yaml, MissingClasses: missing}, nil
}

// process substitutes the variables in a file and sets the namespace of its objects.
func (s *Set) process(
	file bundle.File,
	namespace string,
	variables config.VariablesClient,
) (repository.Template, error) {
	template, err := repository.NewTemplate(repository.TemplateInput{
		RawArtifact:           file.Data,
		ConfigVariablesClient: variables,
		Processor:             substitution{processor},
		TargetNamespace:       namespace,
	})
	if err == nil {
		return template, nil
	}

	names, syntaxErr := missingVariables(file, variables)

	switch {
	case syntaxErr != nil:
		return nil, s.expressionError(file, syntaxErr)
	case len(names) > 0:
		return nil, fmt.Errorf("%s: %w", s, &MissingVariablesError{File: file.Name, Names: names})
	default:
		return nil, s.processError(file, err)
	}
}

// substitution is clusterctl's processor without the lists of variables, which nothing reads here: each takes as long
// as the substitution.
type substitution struct{ yamlprocessor.Processor }

// GetVariables returns nothing.
func (substitution) GetVariables([]byte) ([]string, error) { return nil, nil }

// GetVariableMap returns nothing.
func (substitution) GetVariableMap([]byte) (map[string]*string, error) { return nil, nil }

// invalid returns the error of a file. Line 0 means the whole file.
func (s *Set) invalid(file bundle.File, line int, reason string) error {
	return fmt.Errorf("%s: %w", s, &bundle.InvalidError{File: file.Name, Line: line, Reason: reason})
}

// expressionError returns the error of a file with an invalid expression. It names expression and
// line, unlike err, which is from clusterctl's library.
func (s *Set) expressionError(file bundle.File, err error) error {
	var syntax *expr.SyntaxError
	if _, found := expr.Parse(string(file.Data)); errors.As(found, &syntax) {
		return s.invalid(file, syntax.Line, fmt.Sprintf("expression %s: %v", syntax.Expression, syntax.Err))
	}

	return s.invalid(file, 0, "holds a ${...} expression that cannot be read: "+err.Error())
}

// Patterns for the document and the line in an error of clusterctl's library. Nothing else of such an
// error is passed on: it quotes the whole document, which may contain credentials.
var (
	invalidDocument = regexp.MustCompile(`^failed to parse yaml: failed to unmarshal the (\w+) yaml document`)
	invalidLine     = regexp.MustCompile(`yaml: (line \d+): [^"]*$`)
)

// processError returns the error of a file that is invalid with its variables substituted.
func (s *Set) processError(file bundle.File, err error) error {
	document := invalidDocument.FindStringSubmatch(err.Error())
	if document == nil {
		return s.invalid(
			file,
			0,
			"with its variables substituted it holds an object that is not a valid Kubernetes object; "+
				"check the variables' values",
		)
	}

	place := "the " + document[1] + " document"
	if line := invalidLine.FindStringSubmatch(err.Error()); line != nil {
		place += ", " + line[1] + " of it,"
	}

	return s.invalid(
		file,
		0,
		place+" is not a YAML object once the variables are substituted; "+
			"check their values, and quote those with special characters",
	)
}
