package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestNormalize checks that nothing is applied which the API server or other programs change.
func TestNormalize(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"

	for name, c := range map[string]struct{ published, applied string }{
		"stringData": {
			"{apiVersion: v1, kind: Secret, data: {a: MQ==, b: MQ==}, stringData: {b: \"2\"}}",
			"{apiVersion: v1, kind: Secret, data: {a: MQ==, b: Mg==}}",
		},
		"stringData without data": {
			"{apiVersion: v1, kind: Secret, stringData: {b: \"2\"}}", "{apiVersion: v1, kind: Secret, data: {b: Mg==}}",
		},
		"stringData that is no text": {
			"{apiVersion: v1, kind: Secret, stringData: {a: 1, b: \"2\"}}",
			"{apiVersion: v1, kind: Secret, data: {b: Mg==}, stringData: {a: 1}}",
		},
		"stringData of another kind": {
			"{apiVersion: example.com/v1, kind: Secret, stringData: {b: \"2\"}}",
			"{apiVersion: example.com/v1, kind: Secret, stringData: {b: \"2\"}}",
		},
		"an aggregated role": {role + "aggregationRule: {}\nrules: []\n", role + "aggregationRule: {}\n"},
		"a role":             {role + "rules: []\n", role + "rules: []\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := parse(t, c.published)
			Normalize(o)
			NewWithT(t).Expect(o.Object).To(Equal(parse(t, c.applied).Object))
		})
	}
}
