package objectdiff

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestMasker checks that values of variables are replaced wherever templates and files put them.
func TestMasker(t *testing.T) {
	m := NewMasker(
		map[string]string{"TOKEN": "0ld-t0ken", "KEY": "-----BEGIN-----\nc2VjcmV0\n", "PIN": "42", "SAME": "same-v4lue"},
		map[string]string{
			"TOKEN": "n3w-t0ken", "ADDED": "added-v4lue", "SAME": "same-v4lue", "NUMBER": "12345678", "ON": "true",
			"QUOTED": `a"b`, "LONGER": "n3w-t0ken-and-more",
		},
	)

	for text, want := range map[string]string{
		"0ld-t0ken":                             "<masked TOKEN>",
		"--token=0ld-t0ken":                     "--token=<masked TOKEN>",
		"--token=n3w-t0ken":                     "--token=<masked TOKEN, changed>",
		"n3w-t0ken-and-more":                    "<masked LONGER>",
		"MGxkLXQwa2Vu":                          "<masked TOKEN>",
		"same-v4lue, added-v4lue":               "<masked SAME>, <masked ADDED>",
		"key: |\n  -----BEGIN-----\n  c2VjcmV0": "key: |\n  <masked KEY>\n  <masked KEY>",
		`{"q": "a\"b"}`:                         `{"q": "<masked QUOTED>"}`,
		"42":                                    "<masked PIN>",
		"0.42.1":                                "0.42.1",
		"true":                                  "true",
		"12345678":                              "<masked NUMBER>",
	} {
		t.Run(text, func(t *testing.T) {
			NewWithT(t).Expect(m.Text(text)).To(Equal(want))
		})
	}

	g := NewWithT(t)
	before := objects(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {0ld-t0ken: ""}}, data:
		{n: 12345678, port: 42, list: [0ld-t0ken], on: true, none: null}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: 0ld-t0ken}, data: {a: MGxkLXQwa2Vu}}`)
	g.Expect(m.Objects(before)[0].Object).To(Equal(objects(t,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {<masked TOKEN>: ""}}, data:
		{n: <masked NUMBER>, port: 42, list: [<masked TOKEN>], on: true, none: null}}`)[0].Object))
	g.Expect(m.Objects(before)[1].Object).To(And(
		HaveKeyWithValue("data", HaveKeyWithValue("a", "MGxkLXQwa2Vu")),
		HaveKeyWithValue("metadata", HaveKeyWithValue("name", "<masked TOKEN>")),
	))
	g.Expect(before[0].Object["data"]).To(HaveKeyWithValue("list", ConsistOf("0ld-t0ken")), "the original is unchanged")
}
