package contracts_test

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinepool"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/util/index"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

//go:embed testdata
var testdata embed.FS

// timeout is how long a program may take on a busy machine.
const timeout = 3 * time.Minute

// namespace contains the Clusters and the objects of providers.
const namespace = "default"

// sharedCluster is the Cluster of Machines and MachinePools. Core takes the bed itself for its workload cluster.
var sharedCluster = client.ObjectKey{Namespace: namespace, Name: "shared"}

// world is a control plane with the CRDs, the roles and the controllers of Cluster API's core.
type world struct {
	bed    *bed.Bed
	client client.Client
	// module is the folder of Cluster API's module.
	module string
}

func newWorld(t *testing.T) *world {
	g := NewWithT(t)
	// The roles of core are aggregated by a controller.
	w := &world{bed: bedtest.Start(t, bed.Options{Nodes: -1, WithoutCertManager: true, WithoutAudit: true})}

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
	} {
		g.Expect(add(scheme)).To(Succeed())
	}

	var err error

	w.client, err = client.New(w.bed.Config(), client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())

	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	module, err := list.Output()
	g.Expect(err).NotTo(HaveOccurred())

	w.module = strings.TrimSpace(string(module))
	w.installCore(t)
	w.startCore(t, scheme)

	return w
}

// installCore creates the CRDs and the roles of core, as its components have them.
func (w *world) installCore(t *testing.T) {
	g := NewWithT(t)

	files, err := filepath.Glob(filepath.Join(w.module, "core/config/crd/bases/*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())

	for _, role := range []string{"role.yaml", "aggregated_role.yaml"} {
		files = append(files, filepath.Join(w.module, "core/config/rbac", role))
	}

	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())

		for _, o := range parse(t, data) {
			if o.GetKind() == "CustomResourceDefinition" {
				o.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"})
			} else if o.GetName() == "manager-role" {
				o.SetLabels(map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"})
			}

			g.Expect(w.client.Create(t.Context(), o)).To(Succeed(), file)
			w.waitEstablished(t, o)
		}
	}

	shared := &clusterv1.Cluster{}
	shared.SetNamespace(sharedCluster.Namespace)
	shared.SetName(sharedCluster.Name)
	shared.Spec.Paused = new(false)
	g.Expect(w.client.Create(t.Context(), shared)).To(Succeed())
}

// startCore runs the controllers of core in this process.
func (w *world) startCore(t *testing.T, scheme *runtime.Scheme) {
	g := NewWithT(t)
	ctx, stop := context.WithCancel(context.Background())

	ctrl.SetLogger(logr.Discard())

	manager, err := ctrl.NewManager(w.bed.Config(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(index.AddDefaultIndexes(ctx, manager)).To(Succeed())

	clusters := clustercache.NewFakeClusterCache(w.client, sharedCluster)
	read, reader := manager.GetClient(), manager.GetAPIReader()

	for _, reconciler := range []interface {
		SetupWithManager(context.Context, ctrl.Manager, controller.Options) error
	}{
		&cluster.Reconciler{
			Client: read, APIReader: reader, ClusterCache: clusters, RemoteConnectionGracePeriod: time.Minute,
		},
		&machine.Reconciler{
			Client: read, APIReader: reader, ClusterCache: clusters, RemoteConditionsGracePeriod: 2 * time.Minute,
		},
		&machineset.Reconciler{
			Client: read, APIReader: reader, ClusterCache: clusters,
			PreflightChecks: sets.New(clusterv1.MachineSetPreflightCheckAll),
		},
		&machinepool.Reconciler{Client: read, APIReader: reader, ClusterCache: clusters},
	} {
		g.Expect(reconciler.SetupWithManager(ctx, manager, controller.Options{})).To(Succeed())
	}

	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()

	t.Cleanup(func() {
		stop()
		NewWithT(t).Expect(<-ended).To(Succeed())
	})
}

// waitEstablished waits until the API server serves the objects of a CRD.
func (w *world) waitEstablished(t *testing.T, o *unstructured.Unstructured) {
	if o.GetKind() != "CustomResourceDefinition" {
		return
	}

	NewWithT(t).Eventually(func(g Gomega) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(o), crd)).To(Succeed())
		g.Expect(crd.Status.Conditions).To(ContainElement(And(
			HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue))))
	}).WithTimeout(timeout).Should(Succeed())
}

// parse returns the objects of a file.
func parse(t *testing.T, data []byte) []*unstructured.Unstructured {
	parsed, err := bundle.ParseComponents(data)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	var objects []*unstructured.Unstructured
	for _, doc := range parsed.Documents {
		objects = append(objects, doc.Object)
	}

	return objects
}

// release is a release of a provider that exists only for one case, so that its kinds are its own.
type release struct {
	*world

	bundle  *bundle.Bundle
	objects []*unstructured.Unstructured
	// patience is how long a program may take for what it does at once if it does it at all.
	patience time.Duration
}

// newRelease returns the sample under another name.
func (w *world) newRelease(t *testing.T, name string) *release {
	b := &bundle.Bundle{
		Provider: bundle.Provider{Type: "InfrastructureProvider", Name: name, Label: "infrastructure-" + name},
		Version:  "v1.2.3",
	}
	rename := renamer(name)

	for file, into := range map[string]*[]byte{
		"infrastructure-components.yaml": &b.Components, "metadata.yaml": &b.Metadata,
	} {
		*into = []byte(rename.Replace(read(t, file)))
	}

	for _, file := range []string{"cluster-template.yaml", "clusterclass-quick.yaml"} {
		b.Templates = append(b.Templates, bundle.File{Name: file, Data: []byte(rename.Replace(read(t, file)))})
	}

	return &release{world: w, bundle: b, patience: timeout}
}

// renamer replaces the name of the sample.
func renamer(name string) *strings.Replacer {
	kind := strings.ToUpper(name[:1]) + name[1:]

	return strings.NewReplacer("example.com", "example.com", "Example", kind, "example", name)
}

func read(t *testing.T, file string) string {
	data, err := testdata.ReadFile("testdata/" + file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return string(data)
}

// install creates the CRDs of a release.
func (r *release) install(t *testing.T) {
	r.objects = parse(t, r.bundle.Components)

	for _, o := range r.objects {
		if o.GetKind() == "CustomResourceDefinition" {
			NewWithT(t).Expect(r.client.Create(t.Context(), o.DeepCopy())).To(Succeed())
			r.waitEstablished(t, o)
		}
	}
}

// kind returns the definition of a kind that ends with a suffix, such as Cluster.
func (r *release) kind(t *testing.T, suffix string) map[string]any {
	want := strings.ToUpper(r.bundle.Provider.Name[:1]) + r.bundle.Provider.Name[1:] + suffix

	for _, o := range r.objects {
		if kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind"); kind == want {
			return o.Object["spec"].(map[string]any)
		}
	}

	t.Fatalf("the release has no kind %s", want)

	return nil
}

// newObject returns an object of a kind of the release.
func (r *release) newObject(t *testing.T, suffix string, spec map[string]any) *unstructured.Unstructured {
	definition := r.kind(t, suffix)
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	kind, _, _ := unstructured.NestedString(definition, "names", "kind")
	o.SetAPIVersion(definition["group"].(string) + "/v1beta2")
	o.SetKind(kind)
	o.SetName(r.bundle.Provider.Name)

	if definition["scope"] == "Namespaced" {
		o.SetNamespace(namespace)
	}

	return o
}

// create creates an object and reports its status, as the provider's controllers do. The API server drops what the CRD
// does not have.
func (r *release) create(
	t *testing.T,
	suffix string,
	spec, status map[string]any,
) clusterv1.ContractVersionedObjectReference {
	g := NewWithT(t)
	o := r.newObject(t, suffix, spec)

	g.Eventually(func() error { return r.client.Create(t.Context(), o) }).WithTimeout(timeout).Should(Succeed())

	if status != nil {
		// A field of another type has a value of that type.
		if typ := r.typeOf(t, suffix, "failureReason"); typ == "integer" {
			status["failureReason"] = int64(1)
		}

		o.Object["status"] = status

		g.Expect(r.client.Status().Update(t.Context(), o)).To(Succeed())
	}

	return clusterv1.ContractVersionedObjectReference{
		APIGroup: o.GroupVersionKind().Group, Kind: o.GetKind(), Name: o.GetName(),
	}
}

// typeOf returns the type of a field of the status, or "".
func (r *release) typeOf(t *testing.T, suffix, field string) string {
	versions, _, _ := unstructured.NestedSlice(r.kind(t, suffix), "versions")
	typ, _, _ := unstructured.NestedString(versions[0].(map[string]any),
		"schema", "openAPIV3Schema", "properties", "status", "properties", field, "type")

	return typ
}

// settled polls until all facts are true, or until one is and the others have had some time more: core evaluates them
// together. It returns those that are false.
func (r *release) settled(t *testing.T, facts func(context.Context) map[string]bool) string {
	var (
		since   time.Time
		missing []string
	)

	NewWithT(t).Eventually(func() bool {
		missing = nil

		all := facts(t.Context())
		for name, holds := range all {
			if !holds {
				missing = append(missing, name)
			}
		}

		if len(missing) < len(all) && since.IsZero() {
			since = time.Now()
		}

		return len(missing) == 0 || !since.IsZero() && time.Since(since) > r.patience
	}).WithTimeout(2*timeout).WithPolling(100*time.Millisecond).Should(BeTrue(), "nothing of it is reported")

	if missing == nil {
		return ""
	}

	return fmt.Sprintf("core does not report %s", strings.Join(missing, ", "))
}

// get reads an object of core.
func (w *world) get(t *testing.T, o client.Object) {
	NewWithT(t).Expect(w.client.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
}

// errorText returns the message of an error, or "".
func errorText(err error) string {
	if err == nil {
		return ""
	}

	return err.Error()
}
