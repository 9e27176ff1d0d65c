package expr

import (
	"errors"
	"fmt"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
)

// render renders a template with Helm inside a named template, as in generated charts. The marks are the entry
// "marks" of the variables.
func render(template string, variables map[string]any) (string, error) {
	return renderFile(`{{ define "object" }}`+template+`{{ end }}`+
		`{{ include "object" (dict "Values" .Values "Marks" .Values.variables.marks) | `+
		`replace "<no value>" "<no <no value>value>" }}`, variables)
}

// renderFile renders the template of a file with Helm.
func renderFile(template string, variables map[string]any) (string, error) {
	const object = "templates/object.yaml"

	rendered, err := engine.Render(&chart.Chart{
		Metadata: &chart.Metadata{Name: "provider", Version: "1.0.0"},
		Templates: []*chart.File{
			{Name: "templates/_expr.tpl", Data: []byte(Helpers)},
			{Name: object, Data: []byte(template)},
		},
	}, chartutil.Values{"Values": map[string]any{"variables": variables}})

	return rendered["provider/"+object], err
}

// clusterctl processes the text with clusterctl's processor. It converts panics to errors.
func clusterctl(text string, variables map[string]string) (out string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()

	b, err := yamlprocessor.NewSimpleProcessor().Process([]byte(text), func(name string) (string, error) {
		if value, set := variables[name]; set {
			return value, nil
		}

		return "", errors.New("not set")
	})

	return string(b), err
}

func asValues(variables map[string]string) map[string]any {
	values := map[string]any{}
	for name, value := range variables {
		values[name] = value
	}

	return values
}

// expectEqual fails the test unless Template and Expand return the same result as clusterctl,
// including errors.
func expectEqual(t *testing.T, text *Text, source string, variables map[string]string) {
	t.Helper()

	want, wantErr := clusterctl(source, variables)
	template := text.Template()
	rendered, renderErr := render(template, asValues(variables))

	expanded, expandErr := text.Expand(variables)

	for _, got := range []struct {
		by, out string
		err     error
	}{{"Helm", rendered, renderErr}, {"Expand", expanded, expandErr}} {
		switch {
		case (got.err != nil) != (wantErr != nil):
			t.Fatalf("%s: error %v, clusterctl: %v\ntext: %q\nvariables: %q\ntemplate: %s",
				got.by, got.err, wantErr, source, variables, template)
		case wantErr == nil && got.out != want:
			t.Fatalf("%s: got %q, clusterctl: %q\ntext: %q\nvariables: %q\ntemplate: %s",
				got.by, got.out, want, source, variables, template)
		}
	}
}
