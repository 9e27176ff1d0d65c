package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestNormalize checks that nothing is applied which the API server or other programs change.
func TestNormalize(t *testing.T) {
	const (
		pem      = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClRVbEoKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
		webhooks = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n"
		role     = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
		injected = "metadata: {annotations: {cert-manager.io/inject-ca-from: a/b}}\n"
		crd      = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
	)

	for name, c := range map[string]struct{ published, applied string }{
		"stringData": {
			"{apiVersion: v1, kind: Secret, data: {a: MQ==, b: MQ==}, stringData: {b: \"2\"}}",
			"{apiVersion: v1, kind: Secret, data: {a: MQ==, b: Mg==}}",
		},
		"stringData of another kind": {
			"{apiVersion: example.com/v1, kind: Secret, stringData: {b: \"2\"}}",
			"{apiVersion: example.com/v1, kind: Secret, stringData: {b: \"2\"}}",
		},
		"an aggregated role": {role + "aggregationRule: {}\nrules: []\n", role + "aggregationRule: {}\n"},
		"a role":             {role + "rules: []\n", role + "rules: []\n"},
		"a placeholder": {
			webhooks + "webhooks: [{name: a, clientConfig: {url: u, caBundle: Cg==}}]\n",
			webhooks + "webhooks: [{name: a, clientConfig: {url: u}}]\n",
		},
		"certificates": {
			webhooks + "webhooks: [{name: a, clientConfig: {caBundle: " + pem + "}}]\n",
			webhooks + "webhooks: [{name: a, clientConfig: {caBundle: " + pem + "}}]\n",
		},
		"certificates that are injected": {
			webhooks + injected + "webhooks: [{name: a, clientConfig: {caBundle: " + pem + "}}]\n",
			webhooks + injected + "webhooks: [{name: a, clientConfig: {}}]\n",
		},
		"a conversion webhook": {
			crd + "spec: {conversion: {webhook: {clientConfig: {caBundle: Cg==}}}}\n",
			crd + "spec: {conversion: {webhook: {clientConfig: {}}}}\n",
		},
		"an API": {
			"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, spec: {caBundle: Cg==}}",
			"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, spec: {}}",
		},
		"a caBundle of another kind": {
			"{apiVersion: example.com/v1, kind: A, spec: {caBundle: Cg==}}",
			"{apiVersion: example.com/v1, kind: A, spec: {caBundle: Cg==}}",
		},
		"an empty status": {"{kind: A, status: {}}", "{kind: A}"},
		"a status":        {"{kind: A, status: {a: b}}", "{kind: A, status: {a: b}}"},
	} {
		t.Run(name, func(t *testing.T) {
			o := parse(t, c.published)
			Normalize(o)
			NewWithT(t).Expect(o.Object).To(Equal(parse(t, c.applied).Object))
		})
	}
}
