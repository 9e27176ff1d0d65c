package compat

import (
	"bytes"
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// example is an infrastructure provider with a spec, in a namespace of its name, which is also that of its objects.
// Its releases are published with GitHub's paths.
type example struct {
	name string
	// spec is written in YAML. $SERVER and $REGISTRY are the addresses of the servers, and NAME the name.
	spec string
	// variables are the content of the Secret variables, and manifests that of the ConfigMap additional.
	variables map[string]string
	manifests string
	// part is what the container of its manager has to have.
	part string
}

// createExample creates a provider, waits until it is ready at v1.0.0, and returns it.
func (s *site) createExample(ctx context.Context, e example) v1alpha2.Provider {
	GinkgoHelper()

	release := small(infrastructure, e.name, "v1.0.0")
	release.Bundle.Components = append(release.Bundle.Components, strings.ReplaceAll(service, "NAME", e.name)...)
	files := map[string][]byte{
		"metadata.yaml": release.Bundle.Metadata, "infrastructure-components.yaml": release.Bundle.Components,
	}
	s.releases.Publish("example/"+e.name, "v1.0.0", files)

	text := strings.NewReplacer("$SERVER", s.releases.URL(), "$REGISTRY", s.registry, "NAME", e.name).Replace(e.spec)
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: e.name, Name: e.name}}
	Expect(yaml.UnmarshalStrict([]byte(text), &p.Spec)).To(Succeed())

	p.Spec.Version = "v1.0.0"
	if p.Spec.FetchConfig == nil {
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
			URL: s.releases.URL() + "/example/" + e.name + "/releases/latest/infrastructure-components.yaml",
		}
	}

	s.create(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.name, Name: "variables"}, StringData: e.variables},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.name, Name: "additional"},
			Data:       map[string]string{"manifests": e.manifests},
		},
		p)
	Eventually(s.current(ctx, p)).Should(runVersion("v1.0.0"))

	if e.part != "" {
		d := &unstructured.Unstructured{}
		d.SetAPIVersion("apps/v1")
		d.SetKind("Deployment")
		Expect(s.Get(ctx, client.ObjectKey{Namespace: e.name, Name: e.name + "-controller-manager"}, d)).To(Succeed())
		Expect(contains(d.Object, container(e.part))).To(BeTrue(), "%v", d.Object)
	}

	return p
}

// service is a Service of a provider.
const service = `---
apiVersion: v1
kind: Service
metadata: {name: NAME-service, namespace: NAME-system}
spec: {selector: {app: NAME}, ports: [{port: 443}]}
`

// describeExamples describes what the documentation of cluster-api-operator shows, what its chart makes, and what is in
// public repositories.
func describeExamples(s **site) {
	DescribeTable("work as documented", func(ctx SpecContext, e example) { (*s).createExample(ctx, e) },
		Entry("flags", example{
			name: "flags",
			spec: `
manager: {syncPeriod: 500s, verbosity: 3}
deployment: {containers: [{name: manager, args: {--level: debug}}]}`,
			part: "args: [--sync-period=500s, --v=3, --level=debug]",
		}),
		Entry("an image", example{
			name: "ownimage",
			spec: "{deployment: {containers: [{name: manager, imageUrl: registry.example.com/mine/manager:v1.0.0-fixed}]}}",
			part: "image: registry.example.com/mine/manager:v1.0.0-fixed",
		}),
		Entry("resources", example{
			name: "resources",
			spec: `
deployment:
  containers:
  - {name: manager, resources: {limits: {cpu: 100m, memory: 30Mi}, requests: {cpu: 50m}}}`,
			part: "resources: {limits: {cpu: 100m, memory: 30Mi}, requests: {cpu: 50m}}",
		}),
		Entry("releases", example{
			name: "repository", spec: "{fetchConfig: {url: $SERVER/example/NAME/releases}}",
		}),
		Entry("a web server", example{
			name: "webserver", spec: "{fetchConfig: {url: $SERVER/plain/example/NAME/v1.0.0/infrastructure-components.yaml}}",
		}),
		Entry("no additional manifests", example{
			name: "nothing", spec: "{additionalManifests: {name: additional}}", manifests: "# additional manifests go here\n",
		}),
		Entry("manifest patches", example{
			name: "merged", spec: `{manifestPatches: ["{apiVersion: v1, kind: Service, metadata: {labels: {tested: 'yes'}}}"]}`,
		}),
		Entry("patches", example{
			name: "patched",
			spec: `
patches:
- patch: "{apiVersion: v1, kind: Service, metadata: {labels: {tested: 'yes'}}}"
  target: {kind: Service}
- patch: "[{op: add, path: /spec/template/spec/containers/0/args/-, value: --more}]"
  target: {group: apps, version: v1, kind: Deployment, name: NAME-controller-manager, namespace: NAME}`,
			part: "args: [--level=info, --more]",
		}),
		Entry("a Secret elsewhere", example{
			name: "secret", spec: "{configSecret: {name: variables, namespace: flags}}",
		}),
		Entry("images", example{
			name: "mirrored", spec: "{configSecret: {name: variables}}",
			variables: map[string]string{"images": "all: {repository: mirror.example.com/capi}"},
			part:      "image: mirror.example.com/capi/mirrored:v1.0.0",
		}),
		Entry("a Deployment", example{
			name: "deployment",
			spec: `
deployment:
  replicas: 2
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: example, operator: Exists, effect: NoSchedule}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: example.com/absent, operator: DoesNotExist}]}]
  containers:
  - {name: manager, env: [{name: EXAMPLE, value: text}], command: [/manager], args: {--example: value}}`,
			part: "{env: [{name: EXAMPLE, value: text}], command: [/manager], args: [--example=value]}",
		}),
		Entry("feature gates", example{
			name: "gates", spec: "{manager: {featureGates: {MachinePool: true, ClusterTopology: true}}}",
			part: `args: ["--feature-gates=ClusterTopology=true,MachinePool=true"]`,
		}),
		Entry("a manager", example{
			name: "manager", spec: "{manager: {}, configSecret: {name: variables, namespace: manager}}",
		}),
		Entry("zero durations", example{
			name: "leader",
			spec: `
manager:
  leaderElection: {leaderElect: true, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceLock: "",
    resourceName: "", resourceNamespace: ""}`,
			part: "args: [--leader-elect=true]",
		}),
		Entry("a token", example{
			name: "token", spec: "{configSecret: {name: variables}}", variables: map[string]string{"github-token": "none"},
		}),
		Entry("a tag", example{
			name: "tag", spec: "{fetchConfig: {url: $SERVER/example/NAME/releases/v1.0.0/infrastructure-components.yaml}}",
		}),
		Entry("a download", example{
			name: "download",
			spec: "{fetchConfig: {url: $SERVER/example/NAME/releases/download/v1.0.0/infrastructure-components.yaml}}",
		}),
		Entry("a whole Deployment", example{
			name: "whole",
			spec: `
manifestPatches:
- |
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: NAME-controller-manager, namespace: NAME}
  spec:
    replicas: 1
    selector: {matchLabels: {app: NAME}}
    template:
      metadata: {labels: {app: NAME}}
      spec:
        containers: [{name: manager, image: "registry.example.com/mine/manager:v1", args: [--mine]}]`,
			part: "{image: registry.example.com/mine/manager:v1, args: [--mine]}",
		}),
		Entry("CRDs", example{
			name: "crds",
			spec: `
patches:
- patch: |
    - op: add
      path: /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/added
      value: {type: string}
  target: {kind: CustomResourceDefinition, name: crdss.small.cluster.x-k8s.io}`,
		}),
	)

	It("add manifests", func(ctx SpecContext) {
		p := (*s).createExample(ctx, example{
			name: "additional", spec: "{additionalManifests: {name: additional}}",
			manifests: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
		})
		more := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "additional", Name: "more"}}
		Expect((*s).Get(ctx, client.ObjectKeyFromObject(more), more)).To(Succeed())

		change(ctx, *s, p, func(p v1alpha2.Provider) { p.GetSpec().AdditionalManifests = nil })
		Eventually(func() bool {
			return apierrors.IsNotFound((*s).Get(ctx, client.ObjectKeyFromObject(more), more))
		}).Should(BeTrue())
	})

	It("patch something", func(ctx SpecContext) {
		p := (*s).createExample(ctx, example{
			name: "strategic",
			spec: `{patches: [{patch: "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: ` +
				`[{name: manager, env: [{name: HTTPS_PROXY, value: proxy}]}]}}}}"}]}`,
			part: "{args: [--level=info], env: [{name: HTTPS_PROXY, value: proxy}]}",
		})
		change(ctx, *s, p, func(p v1alpha2.Provider) {
			p.GetSpec().Patches[0].Target = &v1alpha2.PatchTarget{Kind: "Deployment", Name: "mistyped"}
		})
		Eventually((*s).current(ctx, p)).Should(
			fail(v1alpha2.ReadyCondition, v1alpha2.ComponentsPatchErrorReason, "it matches no object"))
	})

	describeRefusals(s)
}

// describeRefusals describes examples that a user has to change.
func describeRefusals(s **site) {
	It("accept an empty credential", func(ctx SpecContext) {
		release := small(infrastructure, "empty", "v1.0.0")
		release.Bundle.Components = bytes.ReplaceAll(
			release.Bundle.Components, []byte("${LEVEL:=info}"), []byte("${CREDENTIALS}"))
		release.Variables = map[string]string{"CREDENTIALS": ""}
		p, err := release.Install(ctx, *s)
		Expect(err).NotTo(HaveOccurred())
		Eventually((*s).current(ctx, p)).Should(runVersion("v1.0.0"))
	})

	It("have no unknown fields", func(ctx SpecContext) {
		p := unstructuredProvider("unknown-field", map[string]any{
			"manager": map[string]any{"serviceAccountAnnotations": map[string]any{"a": "b"}},
		})
		strict := client.NewDryRunClient(client.WithFieldValidation(*s, metav1.FieldValidationStrict))
		Expect(strict.Create(ctx, p.DeepCopy())).To(MatchError(ContainSubstring("serviceAccountAnnotations")))

		ignoring := client.NewDryRunClient(client.WithFieldValidation(*s, metav1.FieldValidationIgnore))
		Expect(ignoring.Create(ctx, p)).To(Succeed())
		Expect(member(p.Object["spec"], "manager")).NotTo(HaveKey("serviceAccountAnnotations"))
	})

	It("are of v1alpha2", func(ctx SpecContext) {
		p := unstructuredProvider("old", map[string]any{})
		p.SetAPIVersion(v1alpha2.GroupVersion.Group + "/v1alpha1")
		Expect((*s).Create(ctx, p)).To(MatchError(ContainSubstring("no matches for kind")))
	})
}

// unstructuredProvider returns an infrastructure provider in the namespace default.
func unstructuredProvider(name string, spec map[string]any) *unstructured.Unstructured {
	p := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	p.SetGroupVersionKind(infrastructure.GroupVersionKind())
	p.SetNamespace("default")
	p.SetName(name)

	return p
}
