package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/capstan-project/capstan/test/bed/tools"
)

var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes           = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	configMaps      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	crds            = schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
)

// populate creates the initial objects of a bed.
func (b *Bed) populate(ctx context.Context) error {
	definitions, err := b.definitions()
	if err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	for i := range b.options.Nodes {
		group.Go(func() error { return create(ctx, b.client.Resource(nodes), node(fmt.Sprintf("node-%d", i))) })
	}

	if b.data != "" {
		definitions = nil // they exist
	}

	for _, definition := range definitions {
		group.Go(func() error { return create(ctx, b.client.Resource(crds), definition) })
	}

	return group.Wait()
}

// settle waits until the initial objects, and those that controllers create, can be used.
func (b *Bed) settle(ctx context.Context) error {
	const namespace = "default"

	type condition struct {
		until   string
		objects dynamic.ResourceInterface
		missing func([]unstructured.Unstructured) error
	}

	conditions := []condition{
		{"CRDs are established", b.client.Resource(crds), unlessAll(established)},
		{"nodes take pods", b.client.Resource(nodes), unlessAll(takesPods)},
		{"the default namespace exists", b.client.Resource(namespaces), unlessHas(namespace)},
	}
	if !b.options.WithoutControllers {
		// Without these two, pods of the namespace are rejected, or never start on a real node.
		conditions = append(conditions, condition{
			"the default namespace has a service account",
			b.client.Resource(serviceAccounts).Namespace(namespace),
			unlessHas("default"),
		}, condition{
			"the default namespace has the cluster's certificate",
			b.client.Resource(configMaps).Namespace(namespace),
			unlessHas("kube-root-ca.crt"),
		})
	}

	for _, wait := range conditions {
		err := b.poll(ctx, wait.until, func(ctx context.Context) error {
			list, err := wait.objects.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}

			return wait.missing(list.Items)
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// definitions returns the initial CRDs of a bed.
func (b *Bed) definitions() ([]*unstructured.Unstructured, error) {
	all := slices.Clone(b.options.CRDs)

	if b.options.WithoutCertManager {
		return all, nil
	}

	file, err := os.Open(b.tools.Manifests(tools.CertManagerCRDs))
	if err != nil {
		return nil, fmt.Errorf("read the CRDs of cert-manager: %w", err)
	}
	defer file.Close()

	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read the CRDs of cert-manager: %w", err)
		}

		if b.options.LowCPU {
			DropDescriptions(object.Object)
		}

		all = append(all, object)
	}
}

// DropDescriptions removes all descriptions from a CRD, of which they are three quarters: API servers read and merge
// schemas again and again. A property with this name is an object, and stays.
func DropDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["description"].(string); ok {
			delete(value, "description")
		}

		for _, child := range value {
			DropDescriptions(child)
		}
	case []any:
		for _, child := range value {
			DropDescriptions(child)
		}
	}
}

// node returns a Node with the size of a typical server, so that the scheduler has a choice.
func node(name string) *unstructured.Unstructured {
	size := map[string]any{"cpu": "32", "memory": "128Gi", "ephemeral-storage": "500Gi", "pods": "110"}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": map[string]any{
			"name": name,
			"labels": map[string]any{
				"kubernetes.io/hostname": name,
				"kubernetes.io/os":       "linux",
				"kubernetes.io/arch":     runtime.GOARCH,
			},
		},
		"status": map[string]any{
			"capacity": size, "allocatable": size,
			"nodeInfo": map[string]any{"operatingSystem": "linux", "architecture": runtime.GOARCH},
		},
	}}
}

func create(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
	if _, err := client.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
	}

	return nil
}

// unlessAll returns a check whose error names the first object that does not fulfill a condition.
func unlessAll(fulfils func(unstructured.Unstructured) bool) func([]unstructured.Unstructured) error {
	return func(objects []unstructured.Unstructured) error {
		for _, object := range objects {
			if !fulfils(object) {
				return fmt.Errorf("%s %s: not yet", object.GetKind(), object.GetName())
			}
		}

		return nil
	}
}

func unlessHas(name string) func([]unstructured.Unstructured) error {
	return func(objects []unstructured.Unstructured) error {
		for _, object := range objects {
			if object.GetName() == name {
				return nil
			}
		}

		return fmt.Errorf("%s: not yet", name)
	}
}

func established(crd unstructured.Unstructured) bool { return hasCondition(crd, "Established") }

// takesPods reports whether pods can be scheduled on a node. A Ready node may still have the taint
// that keeps pods away from new nodes.
func takesPods(node unstructured.Unstructured) bool {
	taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
	return hasCondition(node, "Ready") && len(taints) == 0
}

func hasCondition(object unstructured.Unstructured, name string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")

	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, ok := condition.(map[string]any)
		return ok && fields["type"] == name && fields["status"] == "True"
	})
}
