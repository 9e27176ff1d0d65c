package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func objectName(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// everything enables what is disabled by default.
const everything = `
podDisruptionBudget: {enabled: true}
networkPolicy: {metricsFrom: [{namespaceSelector: {}}], egress: [{ports: [{port: 443}]}]}
metrics:
  serviceMonitor: {enabled: true, labels: {a: b}}
  prometheusRule: {enabled: true, labels: {a: b}}
  dashboard: {enabled: true}
imagePullSecrets: [{name: registry}]
env: [{name: HTTPS_PROXY, value: http://proxy.example.org}]
volumes: [{name: ca, configMap: {name: ca}}]
volumeMounts: [{name: ca, mountPath: /etc/ca}]
podAnnotations: {a: b}
podLabels: {a: b}
nodeSelector: {a: b}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
priorityClassName: system-cluster-critical
serviceAccount: {annotations: {a: b}}
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
` + twoProviders

// notValues are flags that the chart sets itself, or that are meant for manual use only.
var notValues = []string{"upgrade-crds", "version", "help", "kubeconfig", "leader-election-namespace"}

var _ = Describe("The values", func() {
	read := func(name string, into any) {
		GinkgoHelper()

		data, err := os.ReadFile(filepath.Join(root, "charts/capstan", name))
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.Unmarshal(data, into)).To(Succeed())
	}

	It("have a schema each, and each schema has a value", func() {
		var defaults map[string]any
		read("values.yaml", &defaults)

		var schema map[string]any
		read("values.schema.json", &schema)
		compare("", defaults, schema)
	})

	It("correspond to all flags of the operator", func(ctx SpecContext) {
		help, err := exec.CommandContext(ctx, program, "--help").CombinedOutput()
		Expect(err).NotTo(HaveOccurred())

		var flags []string

		for _, match := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+)`).FindAllStringSubmatch(string(help), -1) {
			if !slices.Contains(notValues, match[1]) {
				flags = append(flags, match[1])
			}
		}

		var defaults struct{ Flags map[string]any }
		read("values.yaml", &defaults)

		var known []string
		for flag := range defaults.Flags {
			known = append(known, flag)
		}

		Expect(known).To(ConsistOf(flags))
	})
})

// compare expects a schema for each value and a value for each schema, in groups that list their
// members.
func compare(path string, value any, schema map[string]any) {
	GinkgoHelper()

	group, isGroup := value.(map[string]any)

	members, listed := schema["properties"].(map[string]any)
	if !isGroup || !listed {
		return
	}

	for name, member := range group {
		Expect(members).To(HaveKey(name), "values.schema.json has no schema for %s%s", path, name)
		compare(path+name+".", member, members[name].(map[string]any))
	}

	for name := range members {
		if path+name == "global" { // Helm's own
			continue
		}

		Expect(group).To(HaveKey(name), "values.yaml has no %s%s", path, name)
	}
}
