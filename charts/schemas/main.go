// Command schemas writes a JSON schema of each of the operator's kinds into dist/, for editors and kubeconform.
// `make release` runs it in the module's root folder.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/charts"
)

func main() {
	if err := write("dist"); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

// write writes the schemas into a folder. Their names are those that kubeconform looks for: coreprovider_v1alpha2.json.
func write(folder string) error {
	definitions, err := charts.CRDs()
	if err != nil {
		return err
	}

	for _, definition := range definitions {
		typed := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, typed); err != nil {
			return err
		}

		for _, version := range typed.Spec.Versions {
			schema := version.Schema.OpenAPIV3Schema
			schema.Schema = "http://json-schema.org/draft-07/schema#"
			closeObjects(schema)

			data, err := json.Marshal(schema)
			if err != nil {
				return err
			}

			name := strings.ToLower(typed.Spec.Names.Kind) + "_" + version.Name + ".json"
			if err := os.WriteFile(filepath.Join(folder, name), append(data, '\n'), 0o644); err != nil {
				return err
			}
		}
	}

	return nil
}

// closeObjects makes fields invalid that are not in the schema, which are most likely typing errors. The API server
// only warns of them.
func closeObjects(schema *apiextensionsv1.JSONSchemaProps) {
	if len(schema.Properties) > 0 && schema.AdditionalProperties == nil && schema.XPreserveUnknownFields == nil {
		schema.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: false}
	}

	for name, property := range schema.Properties {
		closeObjects(&property)
		schema.Properties[name] = property
	}

	if schema.Items != nil && schema.Items.Schema != nil {
		closeObjects(schema.Items.Schema)
	}

	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		closeObjects(schema.AdditionalProperties.Schema)
	}
}
