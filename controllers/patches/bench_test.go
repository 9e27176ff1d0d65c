package patches_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/patches"
)

// large returns a manifest of the size of azure's: 0.6 MB, most of it in two configurations with
// hundreds of webhooks.
func large() []byte {
	var out strings.Builder
	out.WriteString(manifest)

	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		fmt.Fprintf(
			&out,
			"---\napiVersion: admissionregistration.k8s.io/v1\nkind: %s\nmetadata:\n  name: large\nwebhooks:\n",
			kind,
		)

		for i := range 530 {
			fmt.Fprintf(&out, `- admissionReviewVersions:
  - v1
  clientConfig:
    service:
      name: azureserviceoperator-webhook-service
      namespace: capz-system
      path: /default-example-com-v1api20230101-kind%[1]d
  failurePolicy: Fail
  matchPolicy: Exact
  name: default.v1api20230101.kinds%[1]d.example.com
  rules:
  - apiGroups:
    - example.com
    apiVersions:
    - v1api20230101
    operations:
    - CREATE
    - UPDATE
    resources:
    - kinds%[1]d
  sideEffects: None
`, i)
		}
	}

	return []byte(out.String())
}

func BenchmarkRender(b *testing.B) {
	manifest := large()

	for name, patch := range map[string]v1alpha2.Patch{
		"Deployment": {
			Patch:  "spec: {template: {spec: {containers: [{name: manager, image: x}]}}}",
			Target: &v1alpha2.PatchTarget{Kind: "Deployment"},
		},
		"all": {Patch: "metadata: {annotations: {a: b}}"},
	} {
		r, err := patches.New(patches.Input{Patches: []v1alpha2.Patch{patch}})
		if err != nil {
			b.Fatal(err)
		}

		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(manifest)))
			b.ReportAllocs()

			for b.Loop() {
				if _, err := r.Render(manifest); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
