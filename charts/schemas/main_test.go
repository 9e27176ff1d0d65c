package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const root = "../.."

// validate checks a manifest with the schema in a folder that kubeconform takes for its kind.
func validate(g Gomega, folder, manifest string) error {
	var object map[string]any
	g.Expect(yaml.Unmarshal([]byte(manifest), &object)).To(Succeed())

	_, version, _ := strings.Cut(object["apiVersion"].(string), "/")
	name := strings.ToLower(object["kind"].(string)) + "_" + version + ".json"

	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(folder, name))
	g.Expect(err).NotTo(HaveOccurred())

	return schema.Validate(object)
}

func TestSchemas(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	g.Expect(write(folder)).To(Succeed())

	files, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(len(v1alpha2.ProviderTypes())))

	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	g.Expect(err).NotTo(HaveOccurred())

	example := regexp.MustCompile("(?s)```yaml\n(apiVersion: operator.*?)```").FindStringSubmatch(string(readme))
	g.Expect(example).To(HaveLen(2))
	g.Expect(validate(g, folder, example[1])).To(Succeed())

	samples, err := filepath.Glob(filepath.Join(root, "config/samples/*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(samples).NotTo(BeEmpty())

	for _, sample := range samples {
		data, err := os.ReadFile(sample)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(validate(g, folder, string(data))).To(Succeed(), sample)
	}

	mistyped := strings.Replace(example[1], "secretName:", "secretname:", 1)
	g.Expect(validate(g, folder, mistyped)).To(MatchError(ContainSubstring("additional properties 'secretname'")))
}
