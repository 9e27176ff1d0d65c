package chartgen_test

import (
	"encoding/binary"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestBundlesThatOnceDiffered are the essence of differences that the fuzz test has found.
func TestBundlesThatOnceDiffered(t *testing.T) {
	const metadata = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

	workload := func(kind, image string) string {
		return strings.Replace(deploymentImage(image), "kind: Deployment", "kind: "+kind, 1)
	}

	for name, test := range map[string]struct {
		components, value string
		refused           bool
	}{
		"a tab after the end of a document with anchors": {
			metadata + "  labels: {a: &a b, c: *a}\n...\n\t\n", "", false,
		},
		"an anchor of the text null": {metadata + "data: {a: &a \"null\", b: *a}\n", "", false},
		"a separator in a value":     {"# ${ODD:=x}\n" + metadata, "a\n---\nb: c", true},
		"a separator after CRLF":     {"# ${ODD:=x}\n" + metadata, "a\r\n--- # b\r\nb: c", true},
		"the end in a value":         {"# ${ODD:=x}\n" + metadata, "a\n...\n", true},
		"the end after a line separator": {
			metadata + "# ${ODD:=x}\nimmutable: true\n", "a\u2028...", true,
		},
		"a separator after a next line": {
			metadata + "# ${ODD:=x}\nimmutable: true\n", "a\u0085---\u2029b: c", true,
		},
		"a separator after a carriage return": {metadata + "# ${ODD:=x}\nimmutable: true\n", "a\r---\t# b", true},
		"text beside the end":                 {metadata + "# ${ODD:=x}\n", "a\n... b", true},
		"text like an end":                    {metadata + "# ${ODD:=x}\n", "a\u2028#...b", false},
		"an indented line in a Namespace": {
			"# ${ODD:=x}\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "\n  injected: yes", true,
		},
		"a separator in a Namespace": {
			"# ${ODD:=x}\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", "a\n---\nb: c", true,
		},
		"a separator in a text":         {metadata + "data:\n  a: |\n    ---\n    ...\n    b\n", "", false},
		"the end in a text of one line": {metadata + "data:\n  a: '... b ...'\n", "", false},
		"comments after the end":        {metadata + "...\n# a\n\n  # b\n", "", false},
		"a key that merges":             {metadata + "data:\n  \"${ODD:=a}\": b\n", "<<", false},
		"a label for Helm of another type": {
			"# ${ODD:=x}\n" + metadata + "  annotations: {helm.sh/hook: 1}\n", "", true,
		},
		"the provider's label of another type": {
			"# ${ODD:=x}\n" + metadata + "  labels: {cluster.x-k8s.io/provider: 1}\n", "", true,
		},
		"labels that are a list":               {"# ${ODD:=x}\n" + metadata + "  labels: []\n", "", true},
		"labels that are null":                 {metadata + "  labels: null\n", "", false},
		"a number as a StatefulSet's image":    {workload("StatefulSet", "12"), "", false},
		"a short image of a StatefulSet":       {workload("StatefulSet", "nginx"), "", false},
		"UTF-16":                               {utf16Text(binary.BigEndian, metadata), "", true},
		"wrong bytes that a function replaces": {metadata + "data: {a: \"${ODD^^}\"}\n", "\xff", true},
		"a default that is no YAML":            {metadata + "data: {a: ${ODD:=[}}\n", "b", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			values := map[string]string{}

			if test.value != "" {
				values["ODD"] = test.value
			}

			g.Expect(compareBundle(t, test.components, values)).To(Equal(!test.refused))
		})
	}
}
