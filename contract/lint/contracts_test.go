package lint_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/contract/lint"
)

// brokenContracts break the rules about infrastructure, bootstrap configurations and IP address pools.
var brokenContracts = []brokenCase{
	{
		"infra-cluster/template",
		"none",
		infrastructureProvider,
		replace("kind: ExampleClusterTemplate,", "kind: ExampleForm,", "exampleclustertemplates", "exampleforms"),
		"exampleclusters.infrastructure.cluster.x-k8s.io has no matching CRD of kind ExampleClusterTemplate",
	},
	{
		"infra-cluster/provisioned",
		"v1beta2",
		infrastructureProvider,
		replace(
			"status: {properties: {initialization: {properties: {provisioned: {type: boolean}}}, failureDomains",
			"status: {properties: {ready: {type: boolean}, failureDomains",
		),
		"lacks status.initialization.provisioned (boolean)",
	},
	{
		"infra-cluster/provisioned",
		"v1beta1",
		infrastructureProvider,
		with(v1beta1, replace("ready: {type: boolean}, failureDomains", "failureDomains")),
		"lacks status.ready (boolean)",
	},
	{
		"infra-cluster/optional-fields",
		"the failure domains of v1beta1",
		infrastructureProvider,
		replace("failureDomains: {type: array}", "failureDomains: {type: object}"),
		`lacks status.failureDomains of type array (it has type "object")`,
	},
	{
		"infra-cluster/optional-fields",
		"the failure domains of v1beta2",
		infrastructureProvider,
		with(v1beta1, replace("failureDomains: {type: object}", "failureDomains: {type: array}")),
		`lacks status.failureDomains of type object (it has type "array")`,
	},
	{
		"infra-machine/template",
		"none",
		infrastructureProvider,
		replace("kind: ExampleMachineTemplate,", "kind: ExampleForm,", "examplemachinetemplates", "exampleforms"),
		"examplemachines.infrastructure.cluster.x-k8s.io has no matching CRD of kind ExampleMachineTemplate",
	},
	{
		"infra-machine/provider-id",
		"none",
		infrastructureProvider,
		replace("providerID: {type: string, minLength: 1}", "id: {type: string}"),
		"lacks spec.providerID (string)",
	},
	{
		"infra-machine/provisioned",
		"v1beta2",
		infrastructureProvider,
		replace(
			"initialization: {properties: {provisioned: {type: boolean}}}, failureDomain: {type: string}",
			"ready: {type: boolean}",
		),
		"lacks status.initialization.provisioned (boolean)",
	},
	{
		"infra-machine/optional-fields",
		"an object of addresses",
		infrastructureProvider,
		with(v1beta1, replace("addresses: {type: array}", "addresses: {type: object}")),
		`lacks status.addresses of type array (it has type "object")`,
	},
	{
		"infra-machinepool/template",
		"none",
		infrastructureProvider,
		replace("kind: ExampleMachinePoolTemplate,", "kind: ExampleForm,", "examplemachinepooltemplates", "exampleforms"),
		"examplemachinepools.infrastructure.cluster.x-k8s.io has no matching CRD of kind ExampleMachinePoolTemplate",
	},
	{
		"infra-machinepool/provider-id-list",
		"text",
		infrastructureProvider,
		replace("providerIDList: {type: array, maxItems: 10000}", "providerIDList: {type: string}"),
		`lacks spec.providerIDList of type array (it has type "string")`,
	},
	{
		"infra-machinepool/ready",
		"only the field of v1beta2",
		infrastructureProvider,
		replace("ready: {type: boolean}, replicas: {type: integer, minimum: 0}", "replicas: {type: integer, minimum: 0}"),
		"lacks status.ready (boolean)",
	},
	{
		"infra-machinepool/provisioned",
		"only the field of v1beta1",
		infrastructureProvider,
		replace(
			"initialization: {properties: {provisioned: {type: boolean}}}, ready: {type: boolean}, replicas",
			"ready: {type: boolean}, replicas",
		),
		"lacks status.initialization.provisioned (boolean)",
	},
	{
		"infra-machinepool/replicas",
		"none",
		infrastructureProvider,
		replace("replicas: {type: integer, minimum: 0}}}\n---", "size: {type: integer}}}\n---"),
		"lacks status.replicas (integer)",
	},
	{
		"infra-machinepool/optional-fields",
		"a list of kinds",
		infrastructureProvider,
		with(v1beta1, replace("instances: {type: array}", "infrastructureMachineKind: {type: array}")),
		`lacks status.infrastructureMachineKind of type string (it has type "array")`,
	},
	{
		"bootstrap-config/template",
		"none",
		infrastructureProvider,
		replace("kind: ExampleConfigTemplate,", "kind: ExampleForm,", "exampleconfigtemplates", "exampleforms"),
		"exampleconfigs.bootstrap.cluster.x-k8s.io has no matching CRD of kind ExampleConfigTemplate",
	},
	{
		"bootstrap-config/data-secret",
		"none",
		infrastructureProvider,
		replace("dataSecretName: {type: string, minLength: 1}", "secret: {type: string}"),
		"lacks status.dataSecretName (string)",
	},
	{
		"bootstrap-config/data-secret-created",
		"v1beta2",
		infrastructureProvider,
		replace("initialization: {properties: {dataSecretCreated: {type: boolean}}}", "ready: {type: boolean}"),
		"lacks status.initialization.dataSecretCreated (boolean)",
	},
	{
		"bootstrap-config/data-secret-created",
		"v1beta1",
		infrastructureProvider,
		with(v1beta1, replace("ready: {type: boolean}, dataSecretName", "dataSecretName")),
		"lacks status.ready (boolean)",
	},
	{
		"bootstrap-config/optional-fields",
		"a number",
		infrastructureProvider,
		with(v1beta1, replace(
			"dataSecretName: {type: string}", "dataSecretName: {type: string}, failureReason: {type: integer}",
		)),
		`lacks status.failureReason of type string (it has type "integer")`,
	},
	{
		"ipam/conditions",
		"none",
		ipamProvider,
		replace("status: {properties: {conditions: {type: array}}}", "status: {properties: {free: {type: integer}}}"),
		"exampleippools.ipam.cluster.x-k8s.io version v1alpha1 lacks status.conditions",
	},
	{
		"crd/name",
		"an IP address pool",
		ipamProvider,
		replace("exampleippools.ipam", "exampleippool.ipam"),
		"must be named exampleippools.ipam.cluster.x-k8s.io",
	},
	{
		"crd/scope",
		"a Machine",
		infrastructureProvider,
		replace(
			"plural: examplemachines}\n  scope: Namespaced", "plural: examplemachines}\n  scope: Cluster",
			"  name: examplemachines.", "    clusterctl.cluster.x-k8s.io/move: \"\"\n  name: examplemachines.",
		),
		"examplemachines.infrastructure.cluster.x-k8s.io has the scope Cluster",
	},
}

// heading matches the headings of a Markdown page.
var heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)

// TestLinks: the page of each rule exists in Cluster API's book, and has the section.
func TestLinks(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	book := filepath.Join(strings.TrimSpace(string(out)), "docs/book/src")

	for _, url := range linksOf(t) {
		g := NewWithT(t)
		page, section, _ := strings.Cut(strings.TrimPrefix(url, "https://cluster-api.sigs.k8s.io/"), "#")

		content, err := os.ReadFile(filepath.Join(book, page+".md"))
		g.Expect(err).NotTo(HaveOccurred(), url)

		if section != "" {
			g.Expect(sectionsOf(string(content))).To(ContainElement(section), url)
		}
	}
}

// linksOf returns the URLs of all rules, and of findings about all resources.
func linksOf(t *testing.T) []string {
	var urls []string
	for _, rule := range lint.Rules() {
		urls = append(urls, rule.Contract)
	}

	b := infrastructureProvider()
	replace("scope: Namespaced", "scope: Cluster", "group: ", "group: own.", "x-k8s.io/v1beta1: ", "x-k8s.io/x: ",
		"x-k8s.io/v1beta2: ", "x-k8s.io/y: ")(t, b)

	for _, f := range lint.Bundle(b, nil) {
		urls = append(urls, f.Contract)
	}

	slices.Sort(urls)

	return slices.Compact(urls)
}

// sectionsOf returns the anchors that mdBook gives the headings of a page.
func sectionsOf(content string) []string {
	var sections []string

	for _, m := range heading.FindAllStringSubmatch(content, -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}

			return -1
		}, strings.TrimSpace(m[1]))

		unique := anchor
		for n := 1; slices.Contains(sections, unique); n++ {
			unique = fmt.Sprintf("%s-%d", anchor, n)
		}

		sections = append(sections, unique)
	}

	return sections
}
