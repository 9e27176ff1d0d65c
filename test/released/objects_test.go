package released_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgofake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// release is the provider's release.
var release = types.NamespacedName{Namespace: "tiny-system", Name: "infrastructure-tiny"}

// job has completed.
var job = object.Key{
	GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
	Namespace:        "tiny-system",
	Name:             "job",
}

// labels are all that are recorded of a revision when it is created.
func labels() storage.Labels {
	digest := storage.BasisDigest([]byte("content"))

	return storage.Labels{
		Holder: "operator", Digest: "v1-tiny", Version: "v1.0.0", ChartDigest: chart.Digest([]byte("tiny")), Paused: true,
		AdoptedVersion: "v0.9.0", RollbackTo: 1, Staged: waves.Place(-1).Label(),
		Request: state.Request{UID: "resource", Generation: 3, RequestedAt: "now", Automatic: "v1.0.0"},
		Owner:   state.Owner{Resource: "resource", Home: "home", Cluster: "cluster"},
		Basis: state.Basis{
			Variables: digest, Manifests: digest, Source: digest, Kubernetes: "1.36", ChartFormat: "1",
			ImageRegistry: digest, ImageOverrides: digest, Managers: digest,
		},
	}
}

// writeRecord records a revision with all that is recorded of one, and returns the resource whose status knows it.
func writeRecord(t *testing.T) (record, resource []byte) {
	t.Helper()
	g := NewWithT(t)
	secrets := clientgofake.NewClientset().CoreV1().Secrets(release.Namespace)
	at := helm.At(time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC))

	built := buildChart(t)

	files := make([]*helm.BufferedFile, 0, len(built.Files))
	for _, file := range built.Files {
		files = append(files, &helm.BufferedFile{Name: file.Name, Data: file.Data})
	}

	metadata, err := yaml.Marshal(built.Metadata)
	g.Expect(err).NotTo(HaveOccurred())

	loaded, err := helm.Load(append(files, &helm.BufferedFile{Name: "Chart.yaml", Data: metadata}))
	g.Expect(err).NotTo(HaveOccurred())

	loaded.Metadata.Annotations[storage.PatchedCRDsAnnotation] = "tinies.infrastructure.cluster.x-k8s.io=abc"

	rel := &helm.Release{
		Name: release.Name, Namespace: release.Namespace, Version: 2,
		Info: &helm.Info{
			Status: helm.StatusPendingRollback, FirstDeployed: at, LastDeployed: at, Description: "Rollback", Notes: "Notes",
		},
		Manifest: "---\n# Source: tiny/templates/job.yaml\napiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\n",
		Hooks: []*helm.Hook{{
			Name: "hook", Kind: "Job", Path: "templates/hook.yaml", Manifest: "kind: Job", Weight: 1,
			Events: []helm.HookEvent{helm.HookPreRollback}, DeletePolicies: []helm.HookDeletePolicy{helm.DeleteSucceeded},
			LastRun: helm.HookExecution{StartedAt: at, CompletedAt: at, Phase: helm.PhaseSucceeded},
		}},
		Chart:  loaded,
		Config: map[string]any{"variables": map[string]any{"REGION": "north"}},
	}

	var announced state.Announcement

	store := storage.New(secrets, release)
	store.LoadNone()
	store.SetNewRevision(storage.NewRevision{Labels: labels(), Announce: func(a state.Announcement) error {
		announced = a
		return nil
	}})
	g.Expect(store.Create(rel)).To(Succeed())

	maps.Copy(rel.Labels, storage.FinishedJobLabels(2, []object.Key{job}))
	rel.Labels[storage.HealthyLabel] = "true"
	g.Expect(store.End(rel, storage.Outcome{
		Failure: state.FailureUnhealthy, Description: "Rollback failed", Unpruned: true, Adopted: 2,
	})).To(Succeed())

	secret, err := secrets.Get(t.Context(), helm.RecordName(release.Name, 2), metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	secret.APIVersion, secret.Kind = "v1", "Secret"

	p := &v1alpha2.InfrastructureProvider{}
	p.APIVersion, p.Kind = v1alpha2.GroupVersion.String(), "InfrastructureProvider"
	p.Namespace, p.Name, p.UID, p.Finalizers = release.Namespace, "tiny", "resource", []string{v1alpha2.Finalizer}
	p.Status.History = []v1alpha2.ReleaseRevision{
		{Revision: 2, Version: "v1.0.0", Digest: announced.Digest, Status: "failed"},
	}

	return marshal(t, secret), marshal(t, p)
}

// readRecords checks what is read of the revision, and that the status knows its record.
func readRecords(t *testing.T, files map[string][]byte) {
	t.Helper()
	g := NewWithT(t)

	secrets := unmarshal[corev1.Secret](t, files[recordsFile])
	g.Expect(secrets).To(HaveLen(1))

	secret := secrets[0].(*corev1.Secret)
	want := labels()

	revision, ok := storage.RevisionOf(&secret.ObjectMeta)
	g.Expect(ok).To(BeTrue())
	g.Expect(storage.IsFinished(revision, job)).To(BeTrue())

	revision.FinishedJobs = nil
	g.Expect(revision).To(Equal(state.Revision{
		Number: 2, Origin: 2, Status: state.StatusFailed, Holder: want.Holder, Digest: want.Digest, Version: want.Version,
		ChartDigest: want.ChartDigest, Healthy: true, Paused: true, Staged: true, Wave: -1, RollbackTo: 1,
		Unpruned: true, Adopted: 2, AdoptedVersion: want.AdoptedVersion, Failure: state.FailureUnhealthy,
		Request: want.Request, Basis: want.Basis, Owner: want.Owner,
	}))

	rel, err := storage.Decode(secret, release.Name, 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rel.Manifest).To(ContainSubstring("kind: Job"))
	g.Expect(rel.Config).To(Equal(map[string]any{"variables": map[string]any{"REGION": "north"}}))

	digest, err := storage.Digest(rel, secret.Labels)
	g.Expect(err).NotTo(HaveOccurred())

	resource := unmarshal[v1alpha2.InfrastructureProvider](t, files[resourceFile])[0].(*v1alpha2.InfrastructureProvider)
	g.Expect(resource.Status.History).To(HaveLen(1))
	g.Expect(resource.Status.History[0].Digest).To(Equal(digest), "the status knows the record")
}

func readResource(t *testing.T, files map[string][]byte) {
	t.Helper()

	resource := unmarshal[v1alpha2.InfrastructureProvider](t, files[resourceFile])[0]
	NewWithT(t).Expect(resource.(client.Object).GetFinalizers()).To(ConsistOf(v1alpha2.Finalizer))
}

// writeConfiguration publishes the flags of the operator.
func writeConfiguration(t *testing.T) []byte {
	t.Helper()
	g := NewWithT(t)
	c := fake.NewFakeClient()

	config := &controllers.Config{}
	_, err := config.Set(nil)
	g.Expect(err).NotTo(HaveOccurred())

	publisher := &controllers.Publisher{Client: c, Namespace: "capstan-system", Version: "v0.1.0", Config: config}
	g.Expect(publisher.Publish(t.Context())).To(Succeed())

	configMap := &corev1.ConfigMap{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{
		Namespace: "capstan-system", Name: controllers.PublishedName,
	}, configMap)).To(Succeed())

	configMap.APIVersion, configMap.Kind = "v1", "ConfigMap"

	return marshal(t, configMap)
}

// readConfiguration checks that all flags still exist.
func readConfiguration(t *testing.T, files map[string][]byte) {
	t.Helper()
	g := NewWithT(t)
	c := fake.NewFakeClient(unmarshal[corev1.ConfigMap](t, files[configurationFile])...)

	published, err := controllers.ReadPublished(t.Context(), c, "capstan-system")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(published.ChartFormat).NotTo(BeEmpty())
	g.Expect(published.Flags).NotTo(BeEmpty())

	unknown, err := (&controllers.Config{}).Set(published.Flags)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unknown).To(BeEmpty(), "flags that were removed")
}

// definitionFile is the CRD of one kind.
const definitionFile = "config/crd/bases/operator.cluster.x-k8s.io_infrastructureproviders.yaml"

// writeFields lists the fields of resources with their types. All kinds have the same.
func writeFields(t *testing.T) []byte {
	t.Helper()
	g := NewWithT(t)

	data, err := os.ReadFile(filepath.Join(root, definitionFile))
	g.Expect(err).NotTo(HaveOccurred())

	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.UnmarshalStrict(data, definition)).To(Succeed())

	fields := map[string]string{}

	for _, version := range definition.Spec.Versions {
		for _, part := range []string{"spec", "status"} {
			property := version.Schema.OpenAPIV3Schema.Properties[part]
			addFields(fields, part, &property)
		}
	}

	data, err = yaml.Marshal(map[string]any{"apiVersion": v1alpha2.GroupVersion.String(), "fields": fields})
	g.Expect(err).NotTo(HaveOccurred())

	return data
}

// addFields adds the fields below a path.
func addFields(fields map[string]string, path string, property *apiextensionsv1.JSONSchemaProps) {
	fields[path] = property.Type
	for name, child := range property.Properties {
		addFields(fields, path+"/"+name, &child)
	}

	if property.Items != nil {
		addFields(fields, path+"[]", property.Items.Schema)
	}

	if property.AdditionalProperties != nil && property.AdditionalProperties.Schema != nil {
		addFields(fields, path+"{}", property.AdditionalProperties.Schema)
	}
}

// readFields checks that all fields still exist, with the same types.
func readFields(t *testing.T, files map[string][]byte) {
	t.Helper()
	g := NewWithT(t)

	var before, now struct{ Fields map[string]string }
	g.Expect(yaml.Unmarshal(files[fieldsFile], &before)).To(Succeed())
	g.Expect(yaml.Unmarshal(writeFields(t), &now)).To(Succeed())
	g.Expect(len(before.Fields)).To(BeNumerically(">", 100))

	for field, kind := range before.Fields {
		g.Expect(now.Fields).To(HaveKeyWithValue(field, kind))
	}
}

// unmarshal returns the objects of a type in a file, which must have no unknown fields.
func unmarshal[T any, P interface {
	*T
	client.Object
}](t *testing.T, file []byte) []runtime.Object {
	t.Helper()

	var objects []runtime.Object

	for document := range strings.SplitSeq(string(file), "\n---\n") {
		object := P(new(T))
		NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(document), object)).To(Succeed())

		objects = append(objects, object)
	}

	return objects
}
