package compat

import (
	"context"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// fieldsDeployment is a Deployment of the provider with all fields. Its manager is published with the flags that only
// some managers have, and its pods with what the fields refer to.
const fieldsDeployment = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: fields-system}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - name: manager
        image: registry.example.com/fields:v1.0.0
        args:
        - --level=info
        - --feature-gates=Kept=true,Old=true
        - --max-concurrent-reconciles=1
        - --leader-election-id=old
        - --metrics-bind-addr=:8080
        - --diagnostics-address=:8443
        - --insecure-diagnostics=false
        - --health-addr=:9440
        - --webhook-host=0.0.0.0
        env:
        - {name: COLOR, value: "${COLOR:=none}"}
        - {name: SOURCE, value: selected}
        - {name: RELEASE, value: v1.0.0}
        livenessProbe: {httpGet: {path: /healthz, port: 9440}}
        readinessProbe: {httpGet: {path: /readyz, port: 9440}}
      resourceClaims: [{name: device, resourceClaimName: device}]
      volumes: [{name: files, emptyDir: {}}]
`

// added is the manifest of an additional Deployment without pods.
const added = `apiVersion: apps/v1
kind: Deployment
metadata: {name: added}
spec:
  replicas: 0
  selector: {matchLabels: {app: added}}
  template:
    metadata: {labels: {app: added}}
    spec: {containers: [{name: added, image: registry.example.com/added:v1}]}
`

// createFields creates a provider with all fields of the example but those that exclude others, and a provider for each
// of these.
func (s *site) createFields(ctx context.Context, example map[string]any) {
	GinkgoHelper()

	s.create(ctx,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "field-variables", Name: "variables"},
			StringData: map[string]string{"COLOR": "blue"},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "field-manifests", Name: "more"},
			Data:       map[string]string{"manifests": added},
		})
	s.createSources(ctx)

	selector := map[string]any{"selector": member(member(example, "fetchConfig"), "selector")}
	everything := maps.Clone(example)
	everything["fetchConfig"] = selector
	delete(everything, "manifestPatches")
	s.createField(ctx, "fields", everything)

	for _, source := range []string{"oci", "url"} {
		s.createField(ctx, "fields"+source, map[string]any{
			"version":     example["version"],
			"fetchConfig": map[string]any{source: member(member(example, "fetchConfig"), source)},
		})
	}

	key := client.ObjectKey{Namespace: "fields", Name: "fieldsmerged"}
	release := harness.Small(infrastructure, key, "fieldsmerged", "v1.0.0")
	Expect(release.Prepare(ctx, s)).To(Succeed())

	merged := release.Resource()
	merged.GetSpec().ManifestPatches = []string{member(example, "manifestPatches").([]any)[0].(string)}
	s.create(ctx, merged)
}

// createField creates a provider with a spec.
func (s *site) createField(ctx context.Context, name string, spec map[string]any) {
	GinkgoHelper()

	p := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	p.SetGroupVersionKind(v1alpha2.InfrastructureProviderType.GroupVersionKind())
	p.SetNamespace("fields")
	p.SetName(name)
	s.create(ctx, p)
}

// createSources creates the sources in the example, and others that only a part of its selector matches.
func (s *site) createSources(ctx context.Context) {
	GinkgoHelper()

	key := client.ObjectKey{Namespace: "fields", Name: "fields"}
	release := harness.Small(infrastructure, key, "fields", "v1.0.0")
	small, _, _ := strings.Cut(string(release.Bundle.Components), "---\napiVersion: apps/v1")
	components := small + strings.ReplaceAll(fieldsDeployment, "NAME", "fields-controller-manager") +
		strings.ReplaceAll(fieldsDeployment, "NAME", "fields-other")

	for _, source := range []struct{ version, provider, stage string }{
		{"v1.0.0", "fields", "tested"}, {"v1.1.0", "fields", "tested"},
		{"v1.0.0", "fields", "draft"}, {"v1.0.0", "other", "tested"},
	} {
		text := strings.ReplaceAll(components, "v1.0.0", source.version)
		if source.provider != "fields" || source.stage != "tested" {
			text = strings.ReplaceAll(text, "selected", "mistaken")
		}

		s.create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "fields", Name: strings.Join([]string{source.provider, source.stage, source.version}, "-"),
				Labels: map[string]string{
					"provider-components": source.provider, "stage": source.stage,
					v1alpha2.ConfigMapVersionLabel: source.version,
				},
			},
			Data: map[string]string{
				v1alpha2.ConfigMapMetadataKey:   string(release.Bundle.Metadata),
				v1alpha2.ConfigMapComponentsKey: text,
			},
		})
	}

	kind := infrastructure
	s.push(ctx, "fields", harness.Small(kind, client.ObjectKey{Name: "fieldsoci"}, "fieldsoci", "v1.0.0"))

	release = harness.Small(kind, client.ObjectKey{Name: "fieldsurl"}, "fieldsurl", "v1.0.0")
	s.releases.Publish("example/fields", "v1.0.0", map[string][]byte{
		"metadata.yaml": release.Bundle.Metadata, kind.ComponentsFile(): release.Bundle.Components,
	})
}
