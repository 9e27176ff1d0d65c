package attack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/image"
)

// componentsAttempts publish hostile components.
var componentsAttempts = []attempt{
	{"Template syntax in components, in variables and in their defaults", func(a *arena) string {
		jewel := a.jewel()
		look := fmt.Sprintf(`{{ (lookup "v1" "Secret" %q %q).data.value | b64dec }}`, victim, a.name)
		p := a.small("").by("definer")
		p.Spec.Variables = map[string]string{"LOOK": look}
		answer := a.attempted(p, a.small(fmt.Sprintf("---\n%s---\n%s---\n%s", note("a-"+a.name, "", look),
			strings.Replace(note("b-"+a.name, "", "x"), `"x"`, "${LOOK}", 1),
			strings.Replace(note("c-"+a.name, "", "x"), `"x"`, "'${OTHER:="+look+"}'", 1))).configMap())
		a.Expect(a.readableByTenant(a.ctx)).NotTo(ContainSubstring(jewel))

		return answer
	}},
	{"Line breaks and codes for the terminal in the kind of an object", func(a *arena) string {
		a.neverForged()

		return a.attempted(a.small("").by("installer"),
			a.small(fmt.Sprintf("---\napiVersion: v1\nkind: %q\nmetadata: {name: x}\n", forgedLines(a.name))).configMap())
	}},
	{"A name of half a megabyte, for a message that does not fit into the status", func(a *arena) string {
		answer := a.attempted(a.small("").by("installer"), a.small(fmt.Sprintf(
			"---\napiVersion: v1\nkind: %s\nmetadata: {name: x}\n", strings.Repeat("x", 500<<10))).configMap())
		a.Expect(len(answer)).To(BeNumerically("<", 33<<10))

		return answer
	}},
	{"A ClusterRoleBinding in a List, behind a second key and behind an unusual separator", func(a *arena) string {
		a.neverBound()

		binding := a.adminBinding()[4:]
		list := "---\napiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(binding), "\n", "\n  ")
		answers := []string{}

		for i, extra := range []string{
			list,
			"---\nkind: ConfigMap\n" + binding,
			"--- # comment\n" + binding,
			"\n...\n--- !!map\n" + binding,
		} {
			s := small{tenant, fmt.Sprintf("%s-%d", a.name, i), "v1.0.0", extra}
			answers = append(answers, a.attempted(s.by("installer"), s.configMap()))
		}

		return strings.Join(answers, " | ")
	}},
}

// chartAttempts publish hostile Helm charts in the attacker's registry.
var chartAttempts = []attempt{
	{"A chart that reads the operator's environment and files", func(a *arena) string {
		a.neverKnown(gitHubToken)

		file := a.secretFile()

		return a.attemptedChart(map[string]string{
			"templates/x.yaml": note(a.name, "", "x") + fmt.Sprintf("  env: '{{ env \"GITHUB_TOKEN\" }}'\n"+
				"  file: '{{ .Files.Get %q }}'\n", file),
		})
	}},
	{"A schema that refers to an inner server", func(a *arena) string {
		return a.attemptedSchema(`{"$ref": "http://` + a.inner().address + `/schema.json"}`)
	}},
	{"A chart with a ClusterRoleBinding, as an object and as hooks", func(a *arena) string {
		a.neverBound()

		hook := strings.Replace(a.adminBinding(), "metadata: {",
			`metadata: {annotations: {"helm.sh/hook": "pre-install,pre-upgrade,pre-delete,test"}, `, 1)

		return a.attemptedChart(map[string]string{"objects/a.yaml": note(a.name, "", "x"), "objects/hook.yaml": hook})
	}},
	{"A chart with names that lead out of its folder", func(a *arena) string {
		file := filepath.Join(a.TempDir(), "written")
		a.never("a file was written", func(context.Context) bool { _, err := os.Stat(file); return err == nil })

		return a.attemptedChart(map[string]string{
			"templates/../../../../../../../../.." + file: "x", "templates/x.yaml": note(a.name, "", "x"),
		})
	}},
}

// chart pushes a chart with these files to the attacker's registry, which claims to be a provider's, and returns a
// resource that installs it and the Secret that it needs.
func (a *arena) chart(files map[string]string) (*v1alpha2.InfrastructureProvider, *corev1.Secret) {
	a.Helper()

	// Without the attempt's files, the chart can be installed.
	all := []chart.File{
		{Name: "v1.0.0/metadata.yaml", Data: []byte(metadata)},
		{Name: "objects/base.yaml", Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + a.name + "-base}}")},
	}

	for name, text := range files {
		// The operator watches the objects of a chart by this label.
		label := "metadata: {labels: {cluster.x-k8s.io/provider: infrastructure-" + a.name + "}, "
		text = strings.Replace(text, "metadata: {", label, 1)
		all = append(all, chart.File{Name: name, Data: []byte(text)})
	}

	c, err := chart.New(chart.Metadata{
		APIVersion: "v2", Name: "infrastructure-" + a.name, Version: "1.0.0", AppVersion: "v1.0.0",
		Annotations: map[string]string{
			chartgen.AnnotationContentID: "2-abc", chartgen.AnnotationContract: "v1beta2",
			chartgen.AnnotationProviderName: a.name, chartgen.AnnotationProviderType: "InfrastructureProvider",
		},
	}, all)
	a.Expect(err).NotTo(HaveOccurred())

	registry := a.publisherClient()
	ref, err := oci.Parse(a.publisher.Address + "/charts/" + a.name + ":1.0.0")
	a.Expect(err).NotTo(HaveOccurred())
	_, err = image.PushChart(a.ctx, registry, ref, c)
	a.Expect(err).NotTo(HaveOccurred())

	trust := a.trust(map[string]string{"ca.crt": string(a.publisher.CA)})
	p := a.small("").from(v1alpha2.FetchConfiguration{
		OCI: ref.String(), SecretRef: secretOf(trust),
	})

	return p, trust
}

// publisherClient returns a client of the attacker's registry.
func (a *arena) publisherClient() *oci.Client {
	c, err := oci.NewClient(transport.Options{CA: a.publisher.CA})
	a.Expect(err).NotTo(HaveOccurred())

	return c
}

// attemptedChart returns the operator's answer to a chart with these files.
func (a *arena) attemptedChart(files map[string]string) string {
	a.Helper()
	p, trust := a.chart(files)

	return a.attempted(p, trust)
}

// attemptedSchema returns the operator's answer to a chart with this schema of its values.
func (a *arena) attemptedSchema(schema string) string {
	a.Helper()

	return a.attemptedChart(map[string]string{
		"templates/x.yaml": note(a.name, "", "x"), "values.schema.json": schema,
	})
}
