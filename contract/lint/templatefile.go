package lint

import (
	"errors"
	"regexp"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// sampleCluster is the value of ${CLUSTER_NAME} while templates are checked. Names that contain it can be
// compared, unlike those that contain bundle.Placeholder, the value of other required variables.
const sampleCluster = "cluster0"

// clusterName matches the variable.
var clusterName = regexp.MustCompile(`\$\{ ?CLUSTER_NAME ?\}`)

// written returns a text with variables instead of their values.
var written = strings.NewReplacer(sampleCluster, "${CLUSTER_NAME}", bundle.Placeholder, "${...}").Replace

// newTemplateFile parses a cluster template with a name for its Cluster. If it is not valid without values for its
// other variables, expressions that are alone on their line are left out.
func newTemplateFile(t bundle.File) file {
	var parsed *bundle.Components

	text, err := expr.ParseTemplate(string(t.Data))
	if err == nil {
		parsed, err = bundle.ParseTemplate(clusterName.ReplaceAll(t.Data, []byte(sampleCluster)))
	}

	if errors.As(err, new(*expr.SyntaxError)) {
		_, err = bundle.ParseTemplate(t.Data) // with its line, and the expression as written
	}

	if err != nil {
		return file{name: t.Name, err: err}
	}

	return file{name: t.Name, documents: parsed.Documents, variables: text.Variables()} // the sample has fewer
}
