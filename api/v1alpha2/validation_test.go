package v1alpha2_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"nothing at all":            `{}`,
		"ConfigMaps as source":      `{version: v1.13.5, fetchConfig: {selector: {matchLabels: {a: b}}}}`,
		"ConfigMaps by expression":  `{fetchConfig: {selector: {matchExpressions: [{key: a, operator: Exists}]}}}`,
		"a web server":              `{fetchConfig: {http: "https://a/b", secretRef: {name: a}, digest: "sha256:` + strings.Repeat("0", 64) + `"}}`,
		"releases of a project":     `{fetchConfig: {url: "https://github.com/a/b/releases/latest/c.yaml"}}`,
		"a directory":               `{fetchConfig: {directory: /providers}}`,
		"a Secret":                  `{configSecret: {name: aws-variables}}`,
		"a Secret elsewhere":        `{configSecret: {name: aws-variables, namespace: secrets}}`,
		"a Secret, in short":        `{secretName: aws-variables}`,
		"variables":                 `{variables: {EXP_MACHINE_POOL: "true"}}`,
		"the life of the release":   `{suspend: true, paused: true, release: {historyLimit: 9, onFailure: None, onExternalChange: Revert, drift: Warn, rollbackTo: 1}}`,
		"no replicas":               `{deployment: {replicas: 0}, additionalDeployments: {a: {deployment: {replicas: 0, tolerations: []}}}}`,
		"debug alone":               `{manager: {debug: true}}`,
		"patches":                   `{patches: [{patch: "a: b"}, {patch: "[]", target: {kind: Deployment}}], additionalManifests: {name: a}}`,
		"manifestPatches":           `{manifestPatches: ["kind: Deployment"]}`,
		"null, as if it was absent": `{manager: null, deployment: null, fetchConfig: null}`,
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(refusals(t, provider(t, v1alpha2.InfrastructureProviderType, "aws", spec))).To(BeEmpty())
		})
	}
}

func TestVersions(t *testing.T) {
	const message = "must be a version such as v1.13.5"

	for _, version := range []string{
		"v1.13.5", "v0.1.0", "1.13.5", "v1.13.5-rc.1", "v1.13.5-alpha.0.12+deadbeef", "v1.13",
		">=1.13 <1.15", ">=v1.13.0,<v1.15.0", ">= 1.13, < 1.15", "~1.13", "~> v1.13.2", "^1", "1.x", "1.13.*", "*", "!=1.13.1",
		"1.12 - 1.14", "~1.12 || ~1.14", "=1.13.5",
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			_, err := semver.NewConstraint(version)
			g.Expect(err).NotTo(HaveOccurred(), "what the schema lets pass can be read")
			g.Expect(refusals(t, withVersion(t, version))).To(BeEmpty())
		})
	}

	for _, version := range []string{
		"latest", "main", "v", "stable", "v1.2.3.4", "v1..2", ">=", ">=1.13 <", "1.13,", ", 1.13", " v1.13.5", "v1.13.5 ", "v1.13.5\n", "vv1", "v1.13.5@sha256:00", "1 | 2",
	} {
		t.Run(version, func(t *testing.T) {
			NewWithT(t).Expect(refusals(t, withVersion(t, version))).To(ContainElement(ContainSubstring(message)))
		})
	}

	NewWithT(t).Expect(refusals(t, withVersion(t, ""))).To(BeEmpty(), "empty means the newest")
}

func withVersion(t *testing.T, version string) *unstructured.Unstructured {
	t.Helper()
	object := provider(t, v1alpha2.InfrastructureProviderType, "aws", "{}")
	object.Object["spec"] = map[string]any{"version": version}

	return object
}

// refused holds, for every message of a rule in the CRDs, a spec that asks for it.
var refused = map[string][]string{
	"secretName is short for configSecret.name: set only one of the two": {`{secretName: a, configSecret: {name: a}}`},
	"set only one of patches and manifestPatches": {
		`{patches: [{patch: "a: b"}], manifestPatches: ["a: b"]}`,
	},
	"set only one of image and imageUrl": {
		`{deployment: {containers: [{name: manager, imageUrl: a, image: {tag: b}}]}}`,
		`{additionalDeployments: {a: {deployment: {containers: [{name: manager, imageUrl: a, image: {tag: b}}]}}}}`,
	},
	"set exactly one of selector, oci, url, http, directory and image": {
		`{fetchConfig: {}}`,
		`{fetchConfig: {selector: {}, url: a}}`,
		`{fetchConfig: {oci: a, url: a}}`,
		`{fetchConfig: {directory: /a, image: a}}`,
		`{fetchConfig: {secretRef: {name: a}}}`,
		`{fetchConfig: {selector: {}, http: "http://a", image: a}}`,
	},
	"verify is for oci and image only: nothing else carries signatures": {
		`{fetchConfig: {selector: {}, verify: {secretRef: {name: a}}}}`,
	},
	"secretRef is not for selector and directory: they need no credentials": {
		`{fetchConfig: {selector: {}, secretRef: {name: a}}}`,
		`{fetchConfig: {directory: /a, secretRef: {name: a}}}`,
	},
	"must begin with https:// or http://": {`{fetchConfig: {http: "ftp://a"}}`},
	"must be an absolute path":            {`{fetchConfig: {directory: a}}`},
	"debug chooses the manager's settings itself: set it alone or not at all": {
		`{manager: {debug: true, verbosity: 2}}`,
		`{manager: {debug: true, profilerAddress: a}}`,
		`{manager: {debug: true, featureGates: {A: true}}}`,
		`{manager: {debug: true, metrics: {}}}`,
		`{manager: {debug: true, gracefulShutDown: 1s}}`,
		`{additionalDeployments: {a: {manager: {debug: true, syncPeriod: 1m}}}}`,
	},
	"must be longer than nothing, e.g. 10m": {
		`{manager: {syncPeriod: 0s}}`,
		`{manager: {syncPeriod: -1m}}`,
		`{release: {timeout: 0s}}`,
		`{release: {timeout: -1m}}`,
	},
	"must be longer than nothing, e.g. 15s": {`{manager: {leaderElection: {leaseDuration: 0s}}}`},
	"must be longer than nothing, e.g. 10s": {`{manager: {leaderElection: {renewDeadline: 0s}}}`},
	"must be longer than nothing, e.g. 2s":  {`{manager: {leaderElection: {retryPeriod: 0s}}}`},
	"historyLimit (default 10) must be at least 2 × retries (default 3) + 3": {
		`{release: {historyLimit: 8}}`, `{release: {retries: 4}}`, `{release: {historyLimit: 20, retries: 9}}`,
	},
}

func TestRefused(t *testing.T) {
	for message, specs := range refused {
		for _, spec := range specs {
			t.Run(message, func(t *testing.T) {
				NewWithT(t).Expect(refusals(t, provider(t, v1alpha2.InfrastructureProviderType, "aws", spec))).
					To(ContainElement(ContainSubstring(message)), spec)
			})
		}
	}
}

func TestOneMistakeIsOneMessage(t *testing.T) {
	for _, spec := range []string{
		`{version: latest}`, `{manager: {debug: true, verbosity: 2}}`, `{fetchConfig: {}}`, `{fetchConfig: {url: a, http: "http://a"}}`,
		`{release: {historyLimit: 8}}`,
	} {
		NewWithT(t).Expect(refusals(t, provider(t, v1alpha2.InfrastructureProviderType, "aws", spec))).To(HaveLen(1), spec)
	}
}

func TestEveryRuleIsTested(t *testing.T) {
	for _, crd := range readCRDs(t) {
		for _, message := range messages(crd.Spec.Versions[0].Schema.OpenAPIV3Schema) {
			if strings.HasPrefix(message, "the name becomes part of labels") || strings.HasPrefix(message, "must be a version") {
				continue // have tests of their own
			}

			known := false
			for part := range refused {
				known = known || strings.HasPrefix(message, part)
			}

			if !known {
				t.Errorf("%s: no test asks for the rule %q", crd.Name, message)
			}
		}
	}
}

// messages collects those of all CEL rules below a schema.
func messages(schema *apiextensionsv1.JSONSchemaProps) []string {
	var found []string
	for _, rule := range schema.XValidations {
		found = append(found, rule.Message)
	}

	for _, property := range schema.Properties {
		found = append(found, messages(&property)...)
	}

	if schema.Items != nil && schema.Items.Schema != nil {
		found = append(found, messages(schema.Items.Schema)...)
	}

	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		found = append(found, messages(schema.AdditionalProperties.Schema)...)
	}

	return found
}

func readCRDs(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()

	var crds []apiextensionsv1.CustomResourceDefinition

	for _, content := range readFolder(t, crdFolder) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(content, &crd); err != nil {
			t.Fatal(err)
		}

		crds = append(crds, crd)
	}

	return crds
}

func readFolder(t *testing.T, folder string) [][]byte {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	if len(files) < len(v1alpha2.ProviderTypes()) {
		t.Fatalf("%s holds %d files, less than one for each kind", folder, len(files))
	}

	var contents [][]byte

	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		contents = append(contents, content)
	}

	return contents
}

func TestNamesFitIntoLabels(t *testing.T) {
	const message = "the name becomes part of labels"

	for _, providerType := range v1alpha2.ProviderTypes() {
		t.Run(string(providerType), func(t *testing.T) {
			g := NewWithT(t)
			longest := strings.Repeat("x", 63-len(providerType.Label("")))
			g.Expect(refusals(t, provider(t, providerType, longest, "{}"))).To(BeEmpty())
			g.Expect(refusals(t, provider(t, providerType, longest+"x", "{}"))).To(ContainElement(ContainSubstring(message)))
			g.Expect(refusals(t, provider(t, providerType, "a.b", "{}"))).To(ContainElement(ContainSubstring(message)))
		})
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	kinds := map[string]bool{}

	for _, content := range readFolder(t, sampleFolder) {
		g := NewWithT(t)
		object := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal(content, object)).To(Succeed())
		object.SetNamespace("default") // theirs do not exist here
		g.Expect(refusals(t, object)).To(BeEmpty(), object.GetKind())
		kinds[object.GetKind()] = true
	}

	NewWithT(t).Expect(kinds).To(HaveLen(len(v1alpha2.ProviderTypes())))
}

// TestClusterAPIOperatorFields has every field of cluster-api-operator's v1alpha2. All of them are
// known and well typed.
func TestClusterAPIOperatorFields(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("testdata/cluster-api-operator.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(refusals(t, provider(t, v1alpha2.InfrastructureProviderType, "aws", string(content)))).To(BeEmpty())
}

func TestStatusIsKeptAndShown(t *testing.T) {
	g := NewWithT(t)
	c := connect(t)
	object := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Name: v1alpha2.CoreProviderName, Namespace: "default"}}
	g.Expect(c.Create(t.Context(), object)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(context.Background(), object) })

	now := metav1.NewTime(time.Now().Truncate(time.Second))
	version, contract := "v1.13.5", "v1beta2"
	status := v1alpha2.ProviderStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{{
			Type: v1alpha2.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1alpha2.HealthyReason,
			Message: "all is well", ObservedGeneration: 1, LastTransitionTime: now,
		}},
		Contract:         &contract,
		InstalledVersion: &version,
		DesiredVersion:   version,
		Chart: &v1alpha2.ChartStatus{
			Name:      "cluster-api",
			Version:   "1.13.5",
			Reference: "oci://example.com/cluster-api",
			Digest:    "sha256:00",
		},
		Release: &v1alpha2.ReleaseStatus{
			Name:      "cluster-api",
			Namespace: "default",
			Revision:  4,
			Status:    "deployed",
		},
		AvailableUpgrades: []v1alpha2.AvailableUpgrade{{Version: "v1.14.0", Contract: "v1beta2"}},
		History: []v1alpha2.ReleaseRevision{
			{Revision: 4, Version: version, ChartDigest: "sha256:00", Status: "deployed", Time: now},
			{Revision: 3},
		},
		MissingVariables:       []string{"A", "B"},
		LastHandledReconcileAt: "now",
	}
	object.Status = *status.DeepCopy()
	g.Expect(c.Status().Update(t.Context(), object)).To(Succeed())

	stored := &v1alpha2.CoreProvider{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), stored)).To(Succeed())
	g.Expect(stored.Status).To(BeComparableTo(status))

	b := apiServer.Get(t)
	kubectl := exec.CommandContext(t.Context(), b.Binary("kubectl"), "--kubeconfig", b.Kubeconfig(), "get", "capstan")
	output, err := kubectl.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	g.Expect(strings.Join(strings.Fields(string(output)), " ")).To(
		MatchRegexp(`^NAME VERSION REVISION READY MESSAGE AGE \S*cluster-api v1\.13\.5 4 True all is well \S+$`))

	for range v1alpha2.HistoryMaxItems {
		stored.Status.History = append(stored.Status.History, v1alpha2.ReleaseRevision{Revision: 1})
	}

	g.Expect(c.Status().Update(t.Context(), stored)).To(MatchError(ContainSubstring("must have at most 20 items")))
}
