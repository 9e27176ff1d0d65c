package setup

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
)

func write(t *testing.T, name, content string) string {
	t.Helper()

	file := filepath.Join(t.TempDir(), name)
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())

	return file
}

// TestVariables: the file of --variables precedes the environment, which precedes the configuration file.
func TestVariables(t *testing.T) {
	g := NewWithT(t)

	t.Setenv("FROM_ENVIRONMENT", "environment")
	t.Setenv("EMPTY", "")

	sources, err := newVariableSources(
		write(t, "variables.yaml", "FROM_FILE: file\nNUMBER: \"7\"\n"),
		write(t, "clusterctl.yaml", "FROM_FILE: x\nFROM_ENVIRONMENT: x\nEMPTY: x\nFROM_CONFIG: config\n"))
	g.Expect(err).NotTo(HaveOccurred())

	variables := []variable{
		{name: "FROM_FILE"}, {name: "NUMBER"}, {name: "FROM_ENVIRONMENT"}, {name: "EMPTY"}, {name: "FROM_CONFIG"},
		{name: "REQUIRED", required: true}, {name: "OPTIONAL"},
	}
	sources.set(variables)
	g.Expect(variables).To(Equal([]variable{
		{name: "FROM_FILE", value: "file", from: "--variables"},
		{name: "NUMBER", value: "7", from: "--variables"},
		{name: "FROM_ENVIRONMENT", value: "environment", from: "environment"},
		{name: "EMPTY", value: "", from: "environment"},
		{name: "FROM_CONFIG", value: "config", from: "configuration file"},
		{name: "REQUIRED", required: true},
		{name: "OPTIONAL"},
	}))

	p := &provider{resource: v1alpha2.InfrastructureProviderType.New(), variables: variables}
	p.resource.SetName("aws")

	g.Expect(incomplete([]*provider{p}, "set them")).To(
		MatchError(ContainSubstring("required variables have no value: REQUIRED of infrastructure-aws; set them")))
	g.Expect(p.objects()).To(ContainElement(HaveField("StringData", Equal(map[string]string{
		"FROM_FILE": "file", "NUMBER": "7", "FROM_ENVIRONMENT": "environment", "EMPTY": "", "FROM_CONFIG": "config",
	}))), "variables without a value are left to their defaults")
	g.Expect(p.resource.GetSpec().SecretName).To(Equal("infrastructure-aws-variables"))
}

// TestVariablesAreNotShown: the error of a file that cannot be read quotes nothing of it.
func TestVariablesAreNotShown(t *testing.T) {
	g := NewWithT(t)
	file := write(t, "variables.yaml", "TOKEN: {secret\n")

	_, err := newVariableSources(file, write(t, "clusterctl.yaml", ""))
	g.Expect(err).To(MatchError("--variables: " + file + " cannot be read; write each variable as NAME: value on a line " +
		"of its own, with quotes around values that are no text"))
}

// TestVariablesAreLookedUp: the command that lists the other variables has the flags that find the same version.
func TestVariablesAreLookedUp(t *testing.T) {
	g := NewWithT(t)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	planner := cli.AddPlannerFlags(flags)
	g.Expect(flags.Parse([]string{"--config", "c.yaml", "--image-registry", "registry.example.com"})).To(Succeed())

	p := &provider{
		resource:  &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Name: "cluster-api"}},
		variables: []variable{{name: "OTHER"}}, flags: sourceFlags(planner),
	}
	p.resource.GetSpec().Version = "v1.14.0"

	printed := clitest.Printed(t, cli.Printer{}, func(printer *cli.Printer) error {
		p.printVariables(printer)
		return nil
	})
	g.Expect(printed).To(HaveSuffix(": capstan providers cluster-api:v1.14.0 --variables --config c.yaml\n"))
}
