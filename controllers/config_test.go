package controllers

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// allFlags returns a value for each flag that is not its default.
func allFlags(t *testing.T) map[string]string {
	t.Helper()

	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&Config{}).BindFlags(set)

	values := map[string]string{}

	set.VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "bool":
			values[f.Name] = map[string]string{"true": "false", "false": "true"}[f.DefValue]
		case "int":
			values[f.Name] = "7"
		case "duration":
			values[f.Name] = "2h0m0s"
		case "stringSlice":
			values[f.Name] = `a,"b,c"`
		default:
			values[f.Name] = "x, y"
		}
	})

	return values
}

// Every flag that the operator has reaches the command line: what one publishes sets the other.
func TestPublishedFlags(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewFakeClient()
	operator, program := &Config{}, &Config{}

	g.Expect(operator.Set(allFlags(t))).To(BeEmpty())

	publisher := &Publisher{Client: c, Namespace: "ns", Version: "v1.0.0", Config: operator}
	g.Expect(publisher.Publish(t.Context())).To(Succeed())

	published, err := ReadPublished(t.Context(), c, "ns")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(published.Version).To(Equal("v1.0.0"))
	g.Expect(published.Flags).To(Equal(allFlags(t)))

	g.Expect(program.Set(published.Flags)).To(BeEmpty())
	g.Expect(program).To(Equal(operator))
}

func TestConfigSet(t *testing.T) {
	g := NewWithT(t)
	c := &Config{}

	g.Expect(c.Set(map[string]string{"of-a-newer-operator": "1", "another": "2", "concurrency": "9"})).To(
		Equal([]string{"another", "of-a-newer-operator"}))
	g.Expect(c.Options.Concurrency).To(Equal(9))
	g.Expect(c.Options.ClusterctlInventory).To(BeTrue(), "a default")

	_, err := c.Set(map[string]string{"concurrency": "many"})
	g.Expect(err).To(MatchError(ContainSubstring("concurrency")))
}

// The command line has to copy the content of files.
func TestConfigFiles(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c := &Config{}
	c.BindFlags(set)

	var described, files []string

	set.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Usage, "File ") || strings.HasPrefix(f.Usage, "Configuration file ") {
			described = append(described, f.Name)
		}
	})

	for _, f := range c.Files() {
		files = append(files, f.Name)
	}

	NewWithT(t).Expect(files).To(ConsistOf(described))
}

func TestReadPublishedErrors(t *testing.T) {
	g := NewWithT(t)
	configMap := &corev1.ConfigMap{Data: map[string]string{"flags": "["}}
	configMap.Namespace, configMap.Name = "ns", PublishedName

	c := fake.NewFakeClient()
	g.Expect(ReadPublished(t.Context(), c, "ns")).To(BeNil())

	g.Expect(c.Create(t.Context(), configMap)).To(Succeed())
	_, err := ReadPublished(t.Context(), c, "ns")
	g.Expect(err).To(MatchError(ContainSubstring("ConfigMap ns/capstan-configuration")))
}
