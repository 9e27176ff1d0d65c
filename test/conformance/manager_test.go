package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capstan-project/capstan/test/conformance"
)

// Variables of a process of this test that runs as a manager: the resource that it reconciles, and its fault.
const (
	exampleResource = "EXAMPLE_RESOURCE"
	exampleFault    = "EXAMPLE_FAULT"

	ignoresOwner    = "ignores owner"
	initializes     = "initializes"
	ignoresEndpoint = "ignores endpoint"
	exits           = "exits"
)

// checkManagers checks releases of a control plane provider that differ in what their managers do.
func checkManagers(t *testing.T, e *conformance.Environment) {
	for name, c := range map[string]struct {
		fault string
		// program is the manager instead of this test.
		program []string
		timeout time.Duration
		want    []string
	}{
		"patient":   {},
		"orphaned":  {fault: ignoresOwner, want: []string{"conformance/owner"}},
		"premature": {fault: initializes, want: []string{"conformance/owner"}},
		"hasty":     {fault: ignoresEndpoint, want: []string{"conformance/endpoint"}},
		"unstable":  {fault: exits, want: []string{"conformance/manager"}},
		"crashing":  {program: []string{"false"}, want: []string{"conformance/manager"}},
		"inactive":  {program: []string{"sleep", "1h"}, timeout: 45 * time.Second, want: []string{"conformance/manager"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			g := NewWithT(t)
			template, err := os.ReadFile("testdata/cluster.yaml")
			g.Expect(err).NotTo(HaveOccurred())

			cluster := filepath.Join(t.TempDir(), "cluster.yaml")
			g.Expect(os.WriteFile(cluster, []byte(renamed(string(template), name)), 0o600)).To(Succeed())

			command := c.program
			if command == nil {
				command = []string{"env", exampleResource + "=" + name + "controlplanes", exampleFault + "=" + c.fault, os.Args[0]}
			}

			g.Expect(rules(t, e, conformance.Options{
				Release: broken(t, controlPlaneSample, name, "v1.0.0", ""),
				Manager: &conformance.Manager{Command: command, Cluster: cluster, Idle: 5 * time.Second},
				Timeout: c.timeout,
			})).To(ConsistOf(c.want))
		})
	}
}

func TestClusterOfAnotherProvider(t *testing.T) {
	g := NewWithT(t)
	e := &conformance.Environment{}
	folder := filepath.Join(sample, "v1.0.0")

	for cluster, message := range map[string]string{
		"testdata/missing.yaml":                                 "no such file",
		filepath.Join(folder, "infrastructure-components.yaml"): "contains no Cluster",
		"testdata/cluster.yaml":                                 "neither a control plane nor infrastructure",
	} {
		_, err := e.Check(t.Context(), conformance.Options{
			Release: folder, Manager: &conformance.Manager{Command: []string{"false"}, Cluster: cluster},
		})
		g.Expect(err).To(MatchError(ContainSubstring(message)))
	}
}

// runManager runs a manager of control planes whose Clusters have no endpoint. It does not return.
func runManager(resource, fault string) {
	fmt.Fprintln(os.Stderr, reconcileAll(context.Background(), resource, fault))
	os.Exit(1)
}

// reconcileAll reconciles each control plane once. It returns only if that fails.
func reconcileAll(ctx context.Context, resource, fault string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}

	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}

	controlPlanes := c.Resource(schema.GroupVersionResource{
		Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Resource: resource,
	})

	watch, err := controlPlanes.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}

	for event := range watch.ResultChan() {
		o, isObject := event.Object.(*unstructured.Unstructured)
		if !isObject || event.Type != "ADDED" {
			continue
		}

		owned := len(o.GetOwnerReferences()) > 0
		if fault == ignoresOwner && !owned || fault == ignoresEndpoint && owned && hasInfrastructure(ctx, c, o) {
			err = createMachine(ctx, c, o)
		}

		// A finalizer or a condition is no fault, whether there is an owner or not.
		status := fmt.Sprintf(`{"status": {"initialization": {"controlPlaneInitialized": %t}}}`, fault == initializes)
		_, patchErr := controlPlanes.Namespace(o.GetNamespace()).
			Patch(ctx, o.GetName(), types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		err = errors.Join(err, patchErr)

		if owned && fault == exits {
			err = errors.New(exits)
		}

		if err != nil {
			return err
		}
	}

	return errors.New("the watch has ended")
}

// hasInfrastructure reports whether the infrastructure exists that the Machines of a control plane need. It has the
// name of the Cluster.
func hasInfrastructure(ctx context.Context, c dynamic.Interface, o *unstructured.Unstructured) bool {
	infrastructure := schema.GroupVersionResource{
		Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Resource: "dockerclusters",
	}
	_, err := c.Resource(infrastructure).Namespace(o.GetNamespace()).
		Get(ctx, o.GetOwnerReferences()[0].Name, metav1.GetOptions{})

	return err == nil
}

// createMachine creates a Machine of a control plane.
func createMachine(ctx context.Context, c dynamic.Interface, o *unstructured.Unstructured) error {
	machine := &unstructured.Unstructured{}
	machine.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	machine.SetKind("Machine")
	machine.SetName(o.GetName())

	_, err := c.Resource(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "machines"}).
		Namespace(o.GetNamespace()).Create(ctx, machine, metav1.CreateOptions{})

	return err
}
