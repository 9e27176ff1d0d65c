package release_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/release"
)

// explained are the fields in which a record of the engine differs from the one of a helm program, by a pattern, with
// the reason. Indexes in lists are left out of paths.
var explained = map[string][]explanation{
	"helm": {
		{`^chart\.templates`, "a Secret holds 1 MiB, and nothing reads them again"},
		{`^info\.description$`, "it has no address of the API server, the fix, and the reason of a rollback"},
	},
	"helm4": {
		{`^chart\.templates`, "a Secret holds 1 MiB, and nothing reads them again"},
		{`^chart\.(schema)?modtime$`, "Helm 4 records when files of the chart were written"},
		{`^info\.description$`, "as with Helm 3"},
		{`^apply_method$`, "objects are applied by the client, which is what its absence means"},
		{`^info\.rollback_revision$`, "Helm 3 has no such field; the revision is in the description and in a label"},
		{`^info\.deleted$`, "Helm 4 leaves out times that are not set, and reads both notations"},
	},
}

// explanation is a pattern of fields, and why they differ.
type explanation struct{ path, reason string }

var _ = Describe("The records of the engine", func() {
	DescribeTable("are those that a helm program writes for the same", func(ctx SpecContext, helm string) {
		version := func(number string, templates ...string) *chart.Chart {
			c := chartOf(number, append(templates,
				configMap("config", "{{ .Values.greeting }} {{ .Values.name }} {{ .Release.Revision }}"),
				serviceAccount("manager"))...)
			c.Files = append(c.Files,
				chart.File{Name: "values.yaml", Data: []byte("greeting: hello\nname: own\n")},
				chart.File{Name: "templates/NOTES.txt", Data: []byte("Notes of {{ .Release.Name }}.\n")},
			)

			return c
		}

		ours, theirs, engine := newNamespace(ctx), newNamespace(ctx), newEngine("one")
		rejectIngresses(ctx, ours)
		rejectIngresses(ctx, theirs)

		values := filepath.Join(GinkgoT().TempDir(), "values.yaml")
		Expect(os.WriteFile(values, []byte("greeting: good morning\n"), 0o600)).To(Succeed())

		spec := func(c *chart.Chart) release.Spec {
			return newSpec(ours, c, map[string]any{"greeting": "good morning"})
		}
		upgrade := func(c *chart.Chart) error {
			return command(ctx, helm, "upgrade", "--install", name, write(c), "-n", theirs, "-f", values).Run()
		}

		mustApply(ctx, engine, spec(version("1.0.0")))
		Expect(upgrade(version("1.0.0"))).To(Succeed())

		mustApply(ctx, engine, spec(version("1.1.0", configMap("added", ""))))
		Expect(upgrade(version("1.1.0", configMap("added", "")))).To(Succeed())

		_, err := applySpec(ctx, engine, spec(version("1.2.0", rejected)))
		Expect(err).To(HaveOccurred())
		Expect(upgrade(version("1.2.0", rejected))).NotTo(Succeed())

		options := release.RollbackOptions{Target: confirmed(ours, 1), Reason: "a test"}
		Expect(rollback(ctx, engine, releaseIn(ours), options, observe(ctx, engine, spec(version("1.2.0", rejected))))).
			Error().NotTo(HaveOccurred())
		run(ctx, helm, "rollback", name, "1", "-n", theirs)

		run(ctx, helm, "uninstall", name, "--keep-history", "-n", ours)
		run(ctx, helm, "uninstall", name, "--keep-history", "-n", theirs)

		var found []string

		for revision := 1; revision <= 4; revision++ {
			for _, difference := range compareRecords(ctx, ours, theirs, revision) {
				found = append(found, fmt.Sprintf("%s (revision %d)", difference, revision))
			}
		}

		known := explained[helm]
		used := map[string]bool{}

		unexplained := slices.DeleteFunc(found, func(difference string) bool {
			return slices.ContainsFunc(known, func(e explanation) bool {
				path, _, _ := strings.Cut(difference, ":")
				matches := regexp.MustCompile(e.path).MatchString(path)
				used[e.path] = used[e.path] || matches

				return matches
			})
		})
		Expect(unexplained).To(BeEmpty(), strings.Join(unexplained, "\n"))
		Expect(used).To(HaveLen(len(known)), "each explanation is needed")
	}, Entry(nil, "helm"), Entry(nil, "helm4"))
})

// compareRecords returns the fields in which the records of a revision in two namespaces differ.
func compareRecords(ctx context.Context, ours, theirs string, revision int) []string {
	GinkgoHelper()

	mine, helms := fieldsOf(ctx, ours, revision), fieldsOf(ctx, theirs, revision)
	paths := maps.Clone(mine)
	maps.Copy(paths, helms)

	var differences []string

	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if mine[path] != helms[path] {
			differences = append(differences, fmt.Sprintf("%s: %q instead of %q", path, mine[path], helms[path]))
		}
	}

	return differences
}

// fieldsOf returns the fields of a record by their path. Times are only set or not.
func fieldsOf(ctx context.Context, namespace string, revision int) map[string]string {
	GinkgoHelper()

	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, secretOf(revision), metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	compressed, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
	Expect(err).NotTo(HaveOccurred())
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	Expect(err).NotTo(HaveOccurred())

	var document any
	Expect(json.NewDecoder(reader).Decode(&document)).To(Succeed())

	found := map[string]string{}

	var add func(path string, value any)

	add = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, child := range value {
				if strings.HasPrefix(key, v1alpha2.Prefix+"/") { // annotations of the chart
					continue
				}

				add(strings.TrimPrefix(path+"."+key, "."), child)
			}
		case []any:
			for _, child := range value {
				add(path, child)
			}
		default:
			found[path] += strings.ReplaceAll(fmt.Sprintln(value), namespace, "NAMESPACE")
		}
	}
	add("", document)

	for label, value := range secret.Labels {
		if !strings.HasPrefix(label, v1alpha2.Prefix) && !strings.HasSuffix(label, "At") { // Helm's, and no times
			add("labels."+label, value)
		}
	}

	// The engine writes the objects in a style of its own.
	objects, err := manifest.Decode(found["manifest"])
	Expect(err).NotTo(HaveOccurred())
	found["manifest"], err = manifest.Encode(objects)
	Expect(err).NotTo(HaveOccurred())

	for path, value := range found {
		found[path] = regexp.MustCompile(`\d{4}-\d\d-\d\dT\S+`).ReplaceAllString(value, "TIME")
	}

	return found
}
