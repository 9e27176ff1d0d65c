package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Manifests prints objects as users keep them in Git: as YAML documents, or as a list in JSON. A comment precedes each
// Secret in YAML, which says that it holds the given kind of secrets, such as "credentials".
func (p *Printer) Manifests(objects []client.Object, secrets string) error {
	var items []any

	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}

		delete(content, "status") // the API server maintains it

		items = append(items, content)
	}

	if p.Format != FormatYAML {
		return p.Print(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, nil)
	}

	for i, o := range objects {
		text, err := yaml.Marshal(items[i])
		if err != nil {
			return fmt.Errorf("print %s: %w", o.GetName(), err)
		}

		p.Printf("---")

		if o.GetObjectKind().GroupVersionKind().Kind == "Secret" {
			p.Printf("# Secret %s holds %s in clear text: encrypt it before it gets into Git.", o.GetName(), secrets)
		}

		p.Printf("%s", strings.TrimSuffix(string(text), "\n"))
	}

	return nil
}
