package contracts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/test/testproviders"
)

// program is what uses a release. It returns why it fails; empty if it does not.
type program func(*testing.T, *release) string

// edit changes a release.
type edit func(*testing.T, *bundle.Bundle)

// proof is a release that breaks a rule, and what fails because of that.
type proof struct {
	rule    string
	edit    edit
	program program
	// failure is part of what the program returns.
	failure string
}

var proofs = []proof{
	{
		"provider/name",
		func(_ *testing.T, b *bundle.Bundle) { b.Provider.Name = "Example_" },
		initialize,
		"provider name Example_ must be in lower case",
	},
	{
		"provider/version",
		func(_ *testing.T, b *bundle.Bundle) { b.Version = "v1.2" },
		initialize,
		"invalid version",
	},
	{
		"files/required",
		func(_ *testing.T, b *bundle.Bundle) { b.Metadata = nil },
		initialize,
		"failed to read \"metadata.yaml\"",
	},
	{
		"metadata/valid",
		metadata("clusterctl.cluster.x-k8s.io/v1alpha3", "clusterctl.cluster.x-k8s.io/v1"),
		initialize,
		"error decoding \"metadata.yaml\"",
	},
	{
		"metadata/series",
		metadata("minor: 2", "minor: 1"),
		initialize,
		"does not match any release series",
	},
	{
		"components/valid",
		components("kind: ServiceAccount\n", "kind: Namespace\n"),
		initialize,
		"There should be no more than one resource with Kind Namespace",
	},
	{
		"components/image-name",
		components("image: registry.example.com/example/", "image: example/"),
		initialize,
		"repository name must be canonical",
	},
	{
		"crd/name",
		components("name: exampleclusters.", "name: examplecluster.", "plural: exampleclusters}", "plural: examplecluster}"),
		initialize,
		"is invalid for a CRD referenced in a core Cluster API CRD",
	},
	{
		"crd/name",
		components("name: exampleclusters.", "name: examplecluster.", "plural: exampleclusters}", "plural: examplecluster}"),
		provisionCluster,
		"core does not report infrastructure",
	},
	{
		"crd/scope",
		components("plural: exampleclusters}\n  scope: Namespaced", "plural: exampleclusters}\n  scope: Cluster"),
		provisionCluster,
		"core does not report infrastructure",
	},
	{
		"crd/contract-label",
		components("    cluster.x-k8s.io/v1beta2: v1beta2\n  name: exampleclusters.", "  name: exampleclusters."),
		provisionCluster,
		"core does not report infrastructure",
	},
	{
		"crd/core-access",
		components(
			"s.infrastructure.cluster.x-k8s.io\nspec:\n  group: infrastructure.cluster.x-k8s.io\n  names: {kind: ExampleCluster",
			"s.infrastructure.example.com\nspec:\n  group: infrastructure.example.com\n  names: {kind: ExampleCluster",
			", cluster.x-k8s.io/aggregate-to-manager: \"true\"", "",
		),
		accessOfCore,
		"core does not report infrastructure",
	},
	{
		"crd/ca-bundle",
		components("plural: exampleclusters}\n  scope: Namespaced\n", `plural: exampleclusters}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: example-webhook, namespace: example-system}, caBundle: Cg==}
`),
		upgrade,
		"unable to load root certificates",
	},
	{
		"references/service-account",
		components("serviceAccountName: example-manager", "serviceAccountName: gone"),
		startPod,
		`serviceaccount "gone" not found`,
	},
	{
		"references/webhook-service",
		components("service: {name: example-webhook,", "service: {name: gone,"),
		callWebhook,
		`service "gone" not found`,
	},
	{
		"references/certificate",
		components("inject-ca-from: example-system/example-cert", "inject-ca-from: example-system/gone"),
		trustWebhook,
		"x509: certificate signed by unknown authority",
	},
	{
		"control-plane/initialized",
		components("controlPlaneInitialized: {type: boolean}", "other: {type: boolean}"),
		provisionCluster,
		"core does not report control plane",
	},
	{
		"control-plane/status-version",
		components("              selector: {type: string}\n              version: {type: string}\n",
			"              selector: {type: string}\n"),
		scaleMachineSet,
		"is provisioning (\"ControlPlaneIsStable\" preflight check failed)",
	},
	{
		"control-plane/replicas",
		components("replicas: {type: integer}\n              version", "size: {type: integer}\n              version"),
		applyTopology,
		".spec.replicas: field not declared in schema",
	},
	{
		"control-plane/version",
		components("              version: {type: string}\n              machineTemplate",
			"              version: {type: integer}\n              machineTemplate"),
		applyTopology,
		"spec.version",
	},
	{
		"control-plane/machine-template",
		components("infrastructureRef:", "infrastructure:"),
		applyTopology,
		".spec.machineTemplate.spec.infrastructureRef: field not declared in schema",
	},
	{
		"control-plane/machine-metadata",
		components("                      labels: {type: object, additionalProperties: {type: string}}\n", ""),
		applyTopology,
		".spec.machineTemplate.metadata.labels: field not declared in schema",
	},
	{
		"control-plane/optional-fields",
		inKind("ExampleControlPlane", "failureReason: {type: string}", "failureReason: {type: integer}"),
		provisionCluster,
		"core does not report control plane",
	},
	{
		"infra-cluster/provisioned",
		inKind("ExampleCluster", "provisioned: {type: boolean}", "other: {type: boolean}"),
		provisionCluster,
		"core does not report infrastructure",
	},
	{
		"infra-cluster/optional-fields",
		inKind("ExampleCluster", "failureReason: {type: string}", "failureReason: {type: integer}"),
		provisionCluster,
		"core does not report infrastructure",
	},
	{
		"infra-machine/provider-id",
		inKind("ExampleMachine", "providerID: {type: string}", "id: {type: string}"),
		provisionMachine,
		"core does not report infrastructure",
	},
	{
		"infra-machine/provisioned",
		inKind("ExampleMachine", "provisioned: {type: boolean}", "other: {type: boolean}"),
		provisionMachine,
		"core does not report infrastructure",
	},
	{
		"infra-machine/optional-fields",
		inKind("ExampleMachine", "failureReason: {type: string}", "failureReason: {type: integer}"),
		provisionMachine,
		"core does not report infrastructure",
	},
	{
		"infra-machinepool/provider-id-list",
		components("providerIDList: {type: array, items: {type: string}}", "ids: {type: array, items: {type: string}}"),
		provisionMachinePool,
		"core does not report provider IDs",
	},
	{
		"infra-machinepool/ready",
		components("              ready: {type: boolean}\n", ""),
		provisionMachinePool,
		"infrastructure",
	},
	{
		"infra-machinepool/optional-fields",
		components("ready: {type: boolean}\n", "ready: {type: boolean}\n"+
			"              infrastructureMachineKind: {type: array, items: {type: string}}\n"),
		provisionMachinePool,
		"core does not report provider IDs",
	},
	{
		"bootstrap-config/data-secret",
		components("dataSecretName: {type: string}", "other: {type: string}"),
		provisionMachine,
		"core does not report bootstrap data",
	},
	{
		"bootstrap-config/data-secret-created",
		components("dataSecretCreated: {type: boolean}", "other: {type: boolean}"),
		provisionMachine,
		"core does not report bootstrap data",
	},
	{
		"bootstrap-config/optional-fields",
		inKind("ExampleConfig", "failureReason: {type: string}", "failureReason: {type: integer}"),
		provisionMachine,
		"core does not report bootstrap data",
	},
	{
		"templates/valid",
		template("cluster-template.yaml", "kind: Cluster", "kind: [Cluster"),
		generate,
		"failed to parse yaml",
	},
	{
		"clusterclass/name",
		template("clusterclass-quick.yaml",
			"ClusterClass\nmetadata:\n  name: quick", "ClusterClass\nmetadata:\n  name: slow"),
		generate,
		"ClusterClass quick is missing",
	},
	{
		"templates/served-versions",
		template("clusterclass-quick.yaml",
			"infrastructure.cluster.x-k8s.io/v1beta2\nkind", "infrastructure.cluster.x-k8s.io/v1beta1\nkind"),
		createTemplate,
		"no matches for kind",
	},
}

func TestMain(m *testing.M) {
	// clusterctl must neither ask the network, nor use the configuration and the cluster of the user.
	for name, value := range map[string]string{
		"GOPROXY": "off", "XDG_CONFIG_HOME": os.TempDir(), "KUBECONFIG": filepath.Join(os.TempDir(), "none"),
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}

	// clusterctl reads each setting from the environment, too, where PROVIDERS is not its list of providers, but our
	// folder of real releases.
	if err := os.Unsetenv(testproviders.Variable); err != nil {
		panic(err)
	}

	os.Exit(m.Run())
}

// TestErrors: for each rule of the level error, a program fails if the rule is broken, and does not if it is followed.
func TestErrors(t *testing.T) {
	w := newWorld(t)

	for i, p := range proofs {
		t.Run(p.rule, func(t *testing.T) {
			t.Parallel()

			g := NewWithT(t)
			sound := w.newRelease(t, fmt.Sprintf("sound%d", i))
			g.Expect(lint.Bundle(sound.bundle, nil)).To(BeEmpty())

			broken := w.newRelease(t, fmt.Sprintf("broken%d", i))
			broken.patience = 4 * time.Second
			p.edit(t, broken.bundle)
			g.Expect(lint.Bundle(broken.bundle, nil)).To(ContainElement(
				And(HaveField("Rule", p.rule), HaveField("Level", lint.Error))))

			g.Expect(p.program(t, broken)).To(ContainSubstring(p.failure))
			g.Expect(p.program(t, sound)).NotTo(ContainSubstring(p.failure))
		})
	}
}

// TestAllErrors: no rule of the level error is without proof.
func TestAllErrors(t *testing.T) {
	var proven []string
	for _, p := range proofs {
		proven = append(proven, p.rule)
	}

	for _, rule := range lint.Rules() {
		if rule.Level == lint.Error {
			NewWithT(t).Expect(proven).To(ContainElement(rule.Name))
		}
	}
}

// replaced replaces pairs of old and new text, of which the old ones must exist. The names are those of the sample.
func replaced(t *testing.T, b *bundle.Bundle, data []byte, oldnew []string) []byte {
	rename := renamer(b.Provider.Name)
	text := string(data)

	for i := 0; i < len(oldnew); i += 2 {
		NewWithT(t).Expect(text).To(ContainSubstring(rename.Replace(oldnew[i])))
		text = strings.ReplaceAll(text, rename.Replace(oldnew[i]), rename.Replace(oldnew[i+1]))
	}

	return []byte(text)
}

func components(oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) { b.Components = replaced(t, b, b.Components, oldnew) }
}

func metadata(oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) { b.Metadata = replaced(t, b, b.Metadata, oldnew) }
}

func template(name string, oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) {
		for i, f := range b.Templates {
			if f.Name == name {
				b.Templates[i].Data = replaced(t, b, f.Data, oldnew)
			}
		}
	}
}

// inKind replaces text in the CRD of a kind.
func inKind(kind string, oldnew ...string) edit {
	return func(t *testing.T, b *bundle.Bundle) {
		documents := strings.Split(string(b.Components), "---\n")
		marker := renamer(b.Provider.Name).Replace("{kind: " + kind + ",")

		for i, document := range documents {
			if strings.Contains(document, marker) {
				documents[i] = string(replaced(t, b, []byte(document), oldnew))
			}
		}

		b.Components = []byte(strings.Join(documents, "---\n"))
	}
}
