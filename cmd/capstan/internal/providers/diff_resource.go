package providers

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// readResource reads a provider's resource from a file, or from in if the file is "-".
func readResource(in io.Reader, file, namespace string) (v1alpha2.Provider, error) {
	data, err := readFile(in, file)
	if err != nil {
		return nil, err
	}

	document := unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &document.Object); err != nil {
		return nil, fmt.Errorf("%s: not a single YAML document: %w", file, err)
	}

	p := v1alpha2.ProviderType(document.GetKind()).New()
	if p == nil || document.GetAPIVersion() != v1alpha2.GroupVersion.String() {
		return nil, fmt.Errorf(
			"%s: contains %s of %s; expected the resource of a provider, such as an InfrastructureProvider of %s",
			file,
			cmp.Or(document.GetKind(), "no kind"),
			cmp.Or(document.GetAPIVersion(), "no API"),
			v1alpha2.GroupVersion,
		)
	}

	if err := yaml.UnmarshalStrict(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	p.SetNamespace(cmp.Or(p.GetNamespace(), namespace))

	if p.GetNamespace() == "" || p.GetName() == "" {
		return nil, fmt.Errorf(
			"%s: the resource has no name or no namespace; add them to its metadata, or set --namespace",
			file,
		)
	}

	return p, nil
}

func readFile(in io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(in)
	}

	return os.ReadFile(file)
}
