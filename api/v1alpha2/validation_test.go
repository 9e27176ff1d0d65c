package v1alpha2_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestValidSpecs(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for name, spec := range map[string]string{
		"nothing at all":           `{}`,
		"ConfigMaps as source":     `{version: v1.13.5, fetchConfig: {selector: {matchLabels: {a: b}}}}`,
		"ConfigMaps by expression": `{fetchConfig: {selector: {matchExpressions: [{key: a, operator: Exists}]}}}`,
		"a web server":             `{fetchConfig: {http: "https://a/b", secretRef: {name: a}, digest: "` + digest + `"}}`,
		"releases of a project":    `{fetchConfig: {url: "https://github.com/a/b/releases/latest/c.yaml"}}`,
		"a directory":              `{fetchConfig: {directory: /providers}}`,
		"a Secret":                 `{configSecret: {name: aws-variables}}`,
		"a Secret elsewhere":       `{configSecret: {name: aws-variables, namespace: secrets}}`,
		"a Secret, in short":       `{secretName: aws-variables}`,
		"variables":                `{variables: {EXP_MACHINE_POOL: "true"}}`,
		"suspend and paused":       `{suspend: true, paused: true}`,
		"release limits":           `{release: {historyLimit: 9, retryInterval: 1s, rollbackTo: 1}}`,
		"object policies":          `{policies: {adoption: Always, update: Once, delete: Orphan, recreate: Never}}`,
		"release policies":         `{release: {onFailure: None, onExternalChange: Revert, drift: Warn}}`,
		"an upgrade policy": `{version: ~1.13, upgradePolicy: {mode: Patch,
			window: {schedule: "0 2 * * sat,sun", duration: 2h, timeZone: America/Argentina/Buenos_Aires}}}`,
		"no upgrades":               `{version: v1.13.5, upgradePolicy: {mode: Manual}}`,
		"no replicas":               `{deployment: {replicas: 0}}`,
		"additional Deployments":    `{additionalDeployments: {a: {deployment: {replicas: 0, tolerations: []}}}}`,
		"debug alone":               `{manager: {debug: true}}`,
		"durations that are zero":   `{manager: {leaderElection: {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s}}}`,
		"patches":                   `{patches: [{patch: "a: b"}, {patch: "[]", target: {kind: Deployment}}]}`,
		"additionalManifests":       `{additionalManifests: {name: a}}`,
		"manifestPatches":           `{manifestPatches: ["kind: Deployment"]}`,
		"null, as if it was absent": `{manager: null, deployment: null, fetchConfig: null}`,
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(validate(t, provider(t, v1alpha2.InfrastructureProviderType, "aws", spec))).To(BeEmpty())
		})
	}
}

func TestVersionFormat(t *testing.T) {
	const message = "must be a version such as v1.13.5"

	for _, version := range []string{
		"v1.13.5", "v0.1.0", "1.13.5", "v1.13.5-rc.1", "v1.13.5-alpha.0.12+deadbeef", "v1.13",
		">=1.13 <1.15", ">=v1.13.0,<v1.15.0", ">= 1.13, < 1.15", "~1.13", "~> v1.13.2", "^1",
		"1.x", "1.13.*", "*", "!=1.13.1", "1.12 - 1.14", "~1.12 || ~1.14", "=1.13.5",
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			_, err := semver.NewConstraint(version)
			g.Expect(err).NotTo(HaveOccurred(), "the schema accepts only what can be parsed")
			g.Expect(validate(t, withVersion(t, version))).To(BeEmpty())
		})
	}

	for _, version := range []string{
		"latest", "main", "v", "stable", "v1.2.3.4", "v1..2", ">=", ">=1.13 <", "1.13,", ", 1.13",
		" v1.13.5", "v1.13.5 ", "v1.13.5\n", "vv1", "v1.13.5@sha256:00", "1 | 2",
	} {
		t.Run(version, func(t *testing.T) {
			NewWithT(t).Expect(validate(t, withVersion(t, version))).To(ContainElement(ContainSubstring(message)))
		})
	}

	NewWithT(t).Expect(validate(t, withVersion(t, ""))).To(BeEmpty(), "empty means the newest")
}

func withVersion(t *testing.T, version string) *unstructured.Unstructured {
	t.Helper()
	object := provider(t, v1alpha2.InfrastructureProviderType, "aws", "{}")
	object.Object["spec"] = map[string]any{"version": version}

	return object
}

// invalidSpecs holds specs that violate a rule of the CRDs, by the message of the rule.
var invalidSpecs = map[string][]string{
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
	"must start with https:// or http://": {`{fetchConfig: {http: "ftp://a"}}`},
	"must be an absolute path":            {`{fetchConfig: {directory: a}}`},
	"debug cannot be combined with syncPeriod, leaderElection, cacheNamespace, gracefulShutDown or controller": {
		`{manager: {debug: true, syncPeriod: 1m}}`,
		`{manager: {debug: true, leaderElection: {}}}`,
		`{manager: {debug: true, cacheNamespace: a}}`,
		`{manager: {debug: true, gracefulShutDown: 1s}}`,
		`{manager: {debug: true, controller: {}}}`,
		`{additionalDeployments: {a: {manager: {debug: true, syncPeriod: 1m}}}}`,
	},
	"debug cannot be combined with metrics, health, webhook or profilerAddress": {
		`{manager: {debug: true, metrics: {}}}`,
		`{manager: {debug: true, health: {}}}`,
		`{manager: {debug: true, webhook: {}}}`,
		`{manager: {debug: true, profilerAddress: a}}`,
	},
	"debug cannot be combined with maxConcurrentReconciles, featureGates, additionalArgs or verbosity": {
		`{manager: {debug: true, maxConcurrentReconciles: 1}}`,
		`{manager: {debug: true, featureGates: {A: true}}}`,
		`{manager: {debug: true, additionalArgs: {--a: b}}}`,
		`{manager: {debug: true, verbosity: 2}}`,
	},
	"must be greater than 0s, e.g. 10m": {
		`{manager: {syncPeriod: 0s}}`,
		`{manager: {syncPeriod: -1m}}`,
		`{release: {timeout: 0s}}`,
		`{release: {timeout: -1m}}`,
	},
	"must be between 1s and 10m, e.g. 30s": {
		`{release: {retryInterval: 0s}}`,
		`{release: {retryInterval: 11m}}`,
	},
	"must not be negative, e.g. 15s": {`{manager: {leaderElection: {leaseDuration: -1s}}}`},
	"must not be negative, e.g. 10s": {`{manager: {leaderElection: {renewDeadline: -1s}}}`},
	"must not be negative, e.g. 2s":  {`{manager: {leaderElection: {retryPeriod: -1s}}}`},
	"upgradePolicy.mode selects from a range of versions": {
		`{upgradePolicy: {mode: Patch}}`, `{version: "", upgradePolicy: {mode: Minor}}`,
		`{version: v1.13.5, upgradePolicy: {mode: Patch}}`, `{version: 1.13.5-rc.1, upgradePolicy: {mode: Patch}}`,
	},
	"must be between 1m and 168h, e.g. 2h": {
		`{upgradePolicy: {window: {schedule: "0 2 * * *", duration: 59s}}}`,
		`{upgradePolicy: {window: {schedule: "0 2 * * *", duration: 169h}}}`,
	},
	"upgradePolicy.window.schedule": {
		`{upgradePolicy: {window: {schedule: "0 2 * *", duration: 1h}}}`,
		`{upgradePolicy: {window: {schedule: "@daily", duration: 1h}}}`,
		`{upgradePolicy: {window: {schedule: "TZ=UTC 0 2 * * *", duration: 1h}}}`,
	},
	"upgradePolicy.window.timeZone": {
		`{upgradePolicy: {window: {schedule: "0 2 * * *", duration: 1h, timeZone: ../UTC}}}`,
	},
	"historyLimit (default 10) must be at least 2 × retries (default 3) + 3": {
		`{release: {historyLimit: 8}}`, `{release: {retries: 4}}`, `{release: {historyLimit: 10, retries: 4}}`,
	},
}

func TestInvalidSpecs(t *testing.T) {
	for message, specs := range invalidSpecs {
		for _, spec := range specs {
			t.Run(message, func(t *testing.T) {
				messages := validate(t, provider(t, v1alpha2.InfrastructureProviderType, "aws", spec))
				NewWithT(t).Expect(messages).To(ContainElement(ContainSubstring(message)), spec)
			})
		}
	}
}

func TestOneMessagePerMistake(t *testing.T) {
	for _, spec := range []string{
		`{version: latest}`,
		`{manager: {debug: true, verbosity: 2}}`,
		`{fetchConfig: {}}`,
		`{fetchConfig: {url: a, http: "http://a"}}`,
		`{release: {historyLimit: 8}}`,
	} {
		messages := validate(t, provider(t, v1alpha2.InfrastructureProviderType, "aws", spec))
		NewWithT(t).Expect(messages).To(HaveLen(1), spec)
	}
}

func TestRulesAreCovered(t *testing.T) {
	// TestNameLength, TestVersionFormat and TestKubeConfigOfInstalledProvider cover these.
	prefixes := []string{"the name is part of labels", "must be a version", kubeConfigRule}
	prefixes = slices.AppendSeq(prefixes, maps.Keys(invalidSpecs))

	for _, crd := range readCRDs(t) {
		for _, message := range messages(crd.Spec.Versions[0].Schema.OpenAPIV3Schema) {
			covered := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(message, prefix) })
			if !covered {
				t.Errorf("%s: no test covers the rule %q", crd.Name, message)
			}
		}
	}
}

// messages returns the messages of all CEL rules in a schema.
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
		t.Fatalf("%s contains only %d files, fewer than there are kinds", folder, len(files))
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

func TestNameLength(t *testing.T) {
	const message = "the name is part of labels"

	for _, providerType := range v1alpha2.ProviderTypes() {
		t.Run(string(providerType), func(t *testing.T) {
			g := NewWithT(t)
			longest := strings.Repeat("x", 63-len(providerType.Label("")))
			g.Expect(validate(t, provider(t, providerType, longest, "{}"))).To(BeEmpty())
			g.Expect(validate(t, provider(t, providerType, longest+"x", "{}"))).To(ContainElement(ContainSubstring(message)))
			g.Expect(validate(t, provider(t, providerType, "a.b", "{}"))).To(ContainElement(ContainSubstring(message)))
		})
	}
}

func TestSamples(t *testing.T) {
	kinds := map[string]bool{}

	for _, content := range readFolder(t, sampleFolder) {
		g := NewWithT(t)
		object := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal(content, object)).To(Succeed())
		object.SetNamespace("default") // the sample's own namespace does not exist
		g.Expect(validate(t, object)).To(BeEmpty(), object.GetKind())
		kinds[object.GetKind()] = true
	}

	NewWithT(t).Expect(kinds).To(HaveLen(len(v1alpha2.ProviderTypes())))
}

// TestUnseenResource checks that a resource without an operator does not count as done: neither for
// kstatus, which Flux and Helm 4 wait with, nor for tools that compare the observed generation.
func TestUnseenResource(t *testing.T) {
	for _, kind := range v1alpha2.ProviderTypes() {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			c := connect(t)
			resource := provider(t, kind, "cluster-api", "{}")
			g.Expect(c.Create(t.Context(), resource)).To(Succeed())
			t.Cleanup(func() { _ = c.Delete(context.Background(), resource) })

			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(resource), resource)).To(Succeed())
			observed, _, err := unstructured.NestedInt64(resource.Object, "status", "observedGeneration")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(observed).To(BeEquivalentTo(-1))

			result, err := kstatus.Compute(resource)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.Status).To(Equal(kstatus.InProgressStatus))
		})
	}
}

func TestStatus(t *testing.T) {
	g := NewWithT(t)
	c := connect(t)
	object := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Name: v1alpha2.CoreProviderName, Namespace: "default"}}
	object.Spec.Version = "~1.14"
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
		AvailableUpgrades: []v1alpha2.AvailableUpgrade{
			{Version: "v1.13.6", Contract: "v1beta2"}, {Version: "v1.15.0", Contract: "v1beta2"},
		},
		History: []v1alpha2.ReleaseRevision{
			{Number: 4, Version: version, ChartDigest: "sha256:00", Status: "deployed", Time: now},
			{Number: 3},
		},
		MissingVariables:       []string{"A", "B"},
		LastHandledReconcileAt: "now",
	}
	object.Status = *status.DeepCopy()
	g.Expect(c.Status().Update(t.Context(), object)).To(Succeed())

	stored := &v1alpha2.CoreProvider{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), stored)).To(Succeed())
	g.Expect(stored.Status).To(BeComparableTo(status))

	narrow := `NAME VERSION WANTED REVISION READY AGE MESSAGE \S*cluster-api v1\.13\.5 ~1\.14 4 True \S+ all is well`
	for arguments, columns := range map[string]string{
		"capstan": narrow, "cluster-api": narrow,
		"capstan --output=wide": `NAME VERSION WANTED REVISION READY CONTRACT AVAILABLE AGE MESSAGE ` +
			`\S*cluster-api v1\.13\.5 ~1\.14 4 True v1beta2 v1\.15\.0 \S+ all is well`,
	} {
		get := append([]string{"get"}, strings.Fields(arguments)...)
		output, err := apiServer.Get(t).Command(t.Context(), "kubectl", get...).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(output))
		g.Expect(strings.Join(strings.Fields(string(output)), " ")).To(MatchRegexp("^"+columns+"$"), arguments)
	}

	for range v1alpha2.HistoryMaxItems {
		stored.Status.History = append(stored.Status.History, v1alpha2.ReleaseRevision{Number: 1})
	}

	g.Expect(c.Status().Update(t.Context(), stored)).To(MatchError(ContainSubstring("must have at most 100 items")))
}
