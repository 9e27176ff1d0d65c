package apply

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestNormalize checks that nothing is applied which the API server or other programs change.
func TestNormalize(t *testing.T) {
	const (
		role     = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
		policy   = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nspec: "
		scaler   = "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\n"
		scalerV2 = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n"
	)

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
		"a NetworkPolicy without types": {
			policy + "{ingress: [{}]}", policy + "{ingress: [{}], policyTypes: [Ingress]}",
		},
		"a NetworkPolicy with egress": {
			policy + "{policyTypes: [], egress: [{}]}", policy + "{egress: [{}], policyTypes: [Ingress, Egress]}",
		},
		"a NetworkPolicy with types": {
			policy + "{policyTypes: [Egress]}", policy + "{policyTypes: [Egress]}",
		},
		"a NetworkPolicy with types that are no list": {policy + "{policyTypes: a}", policy + "{policyTypes: a}"},
		"an autoscaler": {
			scaler, scaler + `metadata: {annotations: {autoscaling.alpha.kubernetes.io/metrics: ""}}`,
		},
		"an autoscaler with other metrics": {
			scaler + `metadata: {annotations: {autoscaling.alpha.kubernetes.io/metrics: "[]"}}`,
			scaler + `metadata: {annotations: {autoscaling.alpha.kubernetes.io/metrics: "[]"}}`,
		},
		"an autoscaler in version 2": {scalerV2, scalerV2},
	} {
		t.Run(name, func(t *testing.T) {
			o := parse(t, c.published)
			Normalize(o)
			NewWithT(t).Expect(o.Object).To(Equal(parse(t, c.applied).Object))
		})
	}
}

// TestNormalizeAccount checks that the account of pods has one name, and that none is applied, too.
func TestNormalizeAccount(t *testing.T) {
	kinds := map[string]string{
		"Deployment": `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {%s}}}}`,
		"Job":        `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {%s}}}}`,
		"CronJob": `{apiVersion: batch/v1, kind: CronJob, ` +
			`spec: {jobTemplate: {spec: {template: {spec: {%s}}}}}}`,
		"ReplicationController": `{apiVersion: v1, kind: ReplicationController, spec: {template: {spec: {%s}}}}`,
		"PodTemplate":           `{apiVersion: v1, kind: PodTemplate, template: {spec: {%s}}}`,
		"Pod":                   `{apiVersion: v1, kind: Pod, spec: {%s}}`,
	}

	for published, applied := range map[string]string{
		"serviceAccountName: a":                    "serviceAccountName: a",
		"serviceAccount: a":                        "serviceAccountName: a",
		"serviceAccountName: a, serviceAccount: b": "serviceAccountName: a",
		"hostPID: true":                            `hostPID: true, serviceAccount: ""`,
		`serviceAccountName: "", hostPID: true`:    `serviceAccount: "", hostPID: true`,
		"serviceAccountName: 1":                    "serviceAccountName: 1",
	} {
		for kind, object := range kinds {
			want := applied
			if kind == "Pod" { // it gets the default account when it is created
				want = strings.Replace(applied, `serviceAccount: ""`, "serviceAccountName: default", 1)
			}

			o := parse(t, fmt.Sprintf(object, published))
			Normalize(o)
			NewWithT(t).Expect(o.Object).To(Equal(parse(t, fmt.Sprintf(object, want)).Object), kind)
		}
	}

	const other = `{apiVersion: example.com/v1, kind: Deployment, spec: {template: {spec: {hostPID: true}}}}`

	o := parse(t, other)
	Normalize(o)
	NewWithT(t).Expect(o.Object).To(Equal(parse(t, other).Object), "of another group")
}
