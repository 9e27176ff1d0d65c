package clustertemplate

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// Manifests are what makes a workload cluster.
type Manifests struct {
	// YAML holds the objects, ClusterClasses before the Cluster; it ends without a newline.
	YAML []byte
	// AbsentClasses are the ClusterClasses that the Cluster needs but neither its template brings
	// nor the set holds. They have to be in the management cluster already, which could not be
	// asked.
	MissingClasses []types.NamespacedName
}

// Generate makes the manifests of the requested cluster. A ClusterClass that its topology names
// comes along unless the template brings it or the management cluster has it; nil stands for a
// management cluster that cannot be asked.
//
// The error is a *source.NotFoundError for a flavor or class that is not there, a
// *MissingVariablesError, or a *bundle.InvalidError for a file that is wrong or becomes so by its
// variables. Of the variables' values it tells none but those that became names of objects.
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

	classes, absent, err := s.classes(ctx, keys, variables, management)
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

	return &Manifests{YAML: yaml, MissingClasses: absent}, nil
}

// process puts a file's variables in and its objects into the namespace.
func (s *Set) process(
	file bundle.File,
	namespace string,
	variables config.VariablesClient,
) (repository.Template, error) {
	names, err := missingVariables(file, variables)
	if err != nil {
		return nil, s.expressionError(file, err)
	}

	if len(names) > 0 {
		return nil, fmt.Errorf("%s: %w", s, &MissingVariablesError{File: file.Name, Names: names})
	}

	template, err := repository.NewTemplate(repository.TemplateInput{
		RawArtifact: file.Data, ConfigVariablesClient: variables, Processor: processor, TargetNamespace: namespace,
	})
	if err != nil {
		return nil, s.processError(file, err)
	}

	return template, nil
}

// invalid makes the error of a file; a line of 0 means the whole file.
func (s *Set) invalid(file bundle.File, line int, reason string) error {
	return fmt.Errorf("%s: %w", s, &bundle.InvalidError{File: file.Name, Line: line, Reason: reason})
}

// expressionError says which expression of a file is wrong, and where; clusterctl's library, which
// gave the error, does not.
func (s *Set) expressionError(file bundle.File, err error) error {
	var syntax *expr.SyntaxError
	if _, found := expr.Parse(string(file.Data)); errors.As(found, &syntax) {
		return s.invalid(file, syntax.Line, fmt.Sprintf("expression %s: %v", syntax.Expression, syntax.Err))
	}

	return s.invalid(file, 0, "holds a ${...} expression that cannot be read: "+err.Error())
}

// Where clusterctl's library, and the YAML reader below it, found a document wrong. The rest of its
// message is the whole document, credentials and all, so nothing else of it is passed on.
var (
	wrongDocument = regexp.MustCompile(`^failed to parse yaml: failed to unmarshal the (\w+) yaml document`)
	wrongLine     = regexp.MustCompile(`yaml: (line \d+): [^"]*$`)
)

// processError says what is wrong with a file once its variables are put in.
func (s *Set) processError(file bundle.File, err error) error {
	where := wrongDocument.FindStringSubmatch(err.Error())
	if where == nil {
		return s.invalid(
			file,
			0,
			"with its variables put in it holds an object that Kubernetes does not know in this form; check the variables' values",
		)
	}

	place := "the " + where[1] + " document"
	if line := wrongLine.FindStringSubmatch(err.Error()); line != nil {
		place += ", " + line[1] + " of it,"
	}

	return s.invalid(
		file,
		0,
		place+" is not a YAML object once the variables are put in; check their values, and quote those with special characters",
	)
}
