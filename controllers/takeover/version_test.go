package takeover

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// dockerResource returns the resource of the provider, whose status has a version if that is not empty.
func dockerResource(installed string) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{}
	p.Namespace, p.Name = "capd", "docker"

	if installed != "" {
		p.Status.InstalledVersion = &installed
	}

	return p
}

// deployment returns a Deployment with these images; the last container is the manager.
func deployment(g *WithT, images ...string) *unstructured.Unstructured {
	d := &appsv1.Deployment{}
	d.SetGroupVersionKind(deploymentKind)

	for i, image := range images {
		name := "proxy"
		if i == len(images)-1 {
			name = "manager"
		}

		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: name, Image: image})
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	g.Expect(err).NotTo(HaveOccurred())

	return &unstructured.Unstructured{Object: content}
}

func TestVersion(t *testing.T) {
	g := NewWithT(t)
	role := &unstructured.Unstructured{Object: map[string]any{"kind": "Role"}}
	listed := func(namespace, label, version string) *clusterctlv1.Provider {
		item := &clusterctlv1.Provider{Version: version}
		item.Namespace, item.Name = namespace, label
		item.Labels = map[string]string{v1alpha2.ClusterctlProviderLabel: label}

		return item
	}

	for name, c := range map[string]struct {
		status  string
		items   []client.Object
		objects []*unstructured.Unstructured
		want    string
	}{
		"nothing to adopt": {status: "v1.0.0", items: []client.Object{listed("capd", label, "v1.1.0")}},
		"the status that cluster-api-operator has left": {
			status: "v1.0.0", items: []client.Object{listed("capd", label, "v1.1.0")},
			objects: []*unstructured.Unstructured{role}, want: "v1.0.0",
		},
		"the inventory": {
			items:   []client.Object{listed("capd", label, "v1.1.0")},
			objects: []*unstructured.Unstructured{deployment(g, "example.com/docker:v9.9.9")}, want: "v1.1.0",
		},
		"items of others": {
			items: []client.Object{
				listed("capd", "infrastructure-aws", "v1.1.0"), listed("other", label, "v1.2.0"),
			},
			objects: []*unstructured.Unstructured{role},
		},
		"the manager's image": {
			objects: []*unstructured.Unstructured{
				role, deployment(g, "example.com/proxy:v0.15.0", "example.com/docker:v1.3.0"),
			},
			want: "v1.3.0",
		},
		"another image, if the manager's has no version": {
			objects: []*unstructured.Unstructured{deployment(g, "example.com/web:v1.4.0", "example.com/docker:latest")},
			want:    "v1.4.0",
		},
		"an unknown version": {objects: []*unstructured.Unstructured{deployment(g, "example.com/docker:latest")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(clusterctlv1.AddToScheme(scheme)).To(Succeed())
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.items...).Build()

			version, err := Version(t.Context(), reader, dockerResource(c.status), c.objects)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(version).To(Equal(c.want))
		})
	}
}

// TestVersionWithErrors checks that an inventory that does not exist or must not be read says nothing.
func TestVersionWithErrors(t *testing.T) {
	kind := inventory.GroupResource()

	for name, c := range map[string]struct {
		err    error
		passes bool
	}{
		"a kind that does not exist":   {&meta.NoKindMatchError{}, true},
		"a kind that is not served":    {apierrors.NewNotFound(kind, ""), true},
		"a kind that must not be read": {apierrors.NewForbidden(kind, "", nil), true},
		"a server that is overloaded":  {apierrors.NewTooManyRequests("later", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			list := func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return c.err }
			reader := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
			objects := []*unstructured.Unstructured{deployment(g, "example.com/docker:v1.3.0")}

			version, err := Version(t.Context(), reader, dockerResource(""), objects)
			g.Expect(err == nil).To(Equal(c.passes), "%v", err)

			if c.passes {
				g.Expect(version).To(Equal("v1.3.0"))
			}
		})
	}
}
