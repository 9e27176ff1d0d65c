package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// secretValue is in everything that must not be shown.
const secretValue = "s3cr3t-v4lue"

// memory are releases in memory.
type memory struct {
	revisions []state.Revision // newest first
	records   map[int]*release.Record
}

func (m *memory) Observe(_ context.Context, name types.NamespacedName) (state.History, error) {
	return state.History{Release: name, Revisions: m.revisions}, nil
}

func (m *memory) Read(_ context.Context, _ types.NamespacedName, r state.Revision) (*release.Record, error) {
	if record, ok := m.records[r.Number]; ok {
		return record, nil
	}

	return nil, &storage.CorruptError{Secret: "capa-system/r", Reason: "it is empty"}
}

// object returns an object of the sample release.
func object(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace("capa-system")
	o.SetName(name)

	return o
}

// sample returns a provider, its release and a reader of a cluster with what belongs to it, in which secretValue is
// in every place for values.
func sample(t *testing.T, also interceptor.Funcs) (v1alpha2.Provider, *view.Reader) {
	t.Helper()

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{
		Namespace: "capa-system", Name: "aws", UID: "uid", Annotations: map[string]string{"note": secretValue},
	}}
	p.Spec.Version = "v2.0.0"
	p.Spec.SecretName = "variables"
	p.Spec.Variables = map[string]string{"REGION": secretValue, "PASSWORD": secretValue}
	p.Spec.ManifestPatches = []string{secretValue}
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
		URL:    "https://user:" + secretValue + "@example.com/components.yaml",
		Verify: &v1alpha2.Verification{SecretRef: v1alpha2.LocalSecretReference{Name: "keys"}},
		Digest: "sha256:0123",
	}
	p.Status.Chart = &v1alpha2.ChartStatus{Source: p.Spec.FetchConfig.URL + "?token=" + secretValue}
	p.Status.MissingVariables = []string{"ZONE"}

	deployment := object("apps/v1", "Deployment", "manager", map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": "manager", "image": "registry.example.com/aws:v2.0.0", "args": []any{"--password=" + secretValue},
		}}}}},
	})
	secret := object("v1", "Secret", "credentials", map[string]any{"stringData": map[string]any{"password": secretValue}})

	variables := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "variables"},
		Data:       map[string][]byte{"PASSWORD": []byte(secretValue), "KEY": []byte(secretValue)},
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "awsclusters.example.com", Labels: map[string]string{v1alpha2.ClusterctlProviderLabel: "infrastructure-aws"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1beta1", Served: true}, {Name: "v1beta2", Served: true, Storage: true},
		}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1beta1", "v1beta2"}},
	}
	event := func(name string, at time.Time) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "capa-system", Name: name},
			InvolvedObject: corev1.ObjectReference{UID: "uid"},
			EventTime:      metav1.NewMicroTime(at),
			Type:           "Normal",
			Reason:         name,
			Message:        "first\nsecond",
		}
	}
	other := event("other", time.Now())
	other.InvolvedObject.UID = "other"

	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(
		clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha2.AddToScheme(scheme),
	)).To(Succeed())

	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(also).
		WithObjects(secret, variables, crd, event("Old", time.Now().Add(-time.Hour)), event("New", time.Now()), other).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
			return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
		}).Build()

	releases := &memory{
		revisions: []state.Revision{
			{
				ReleaseRevision: v1alpha2.ReleaseRevision{Number: 3, Status: v1alpha2.RevisionFailed, RollbackTo: 1},
				Origin:          3,
			},
			{
				ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2, Status: v1alpha2.RevisionSuperseded}, Origin: 1,
			},
			{
				ReleaseRevision: v1alpha2.ReleaseRevision{
					Number: 1, Status: v1alpha2.RevisionSuperseded, Healthy: true, Adopted: 2, AdoptedVersion: "v1.9.0",
					Request: v1alpha2.RevisionRequest{UID: "uid", Generation: 4},
				},
				Origin: 1,
			},
		},
		records: map[int]*release.Record{
			1: {AppVersion: "v1.0.0", Description: "Install complete"},
			3: {AppVersion: "v2.0.0", Objects: []*unstructured.Unstructured{deployment, secret}},
		},
	}

	return p, &view.Reader{Client: c, Releases: releases}
}

func TestDetailed(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})

	v, err := reader.Detailed(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(v.Objects).To(HaveExactElements(
		view.Object{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "capa-system", Name: "manager",
			Status: status.NotFoundStatus, Message: "does not exist",
		},
		HaveField("Status", status.CurrentStatus),
	))
	g.Expect(v.Chart.Source).To(Equal("https://example.com/components.yaml"))
	g.Expect(v.Details.Images).To(HaveExactElements("registry.example.com/aws:v2.0.0"))
	g.Expect(v.Details.Trust).To(HaveExactElements("Cosign signature, trusted by Secret keys", "digest sha256:0123"))
	g.Expect(v.Details.Variables).To(HaveExactElements(
		view.Variable{Name: "KEY", From: "Secret capa-system/variables"},
		view.Variable{Name: "PASSWORD", From: "Secret capa-system/variables"},
		view.Variable{Name: "REGION", From: "spec.variables"},
		view.Variable{Name: "ZONE"},
	))
	g.Expect(v.Details.CRDs).To(HaveExactElements(view.CRD{
		Name: "awsclusters.example.com", Served: []string{"v1beta1", "v1beta2"}, Storage: "v1beta2",
		Stored: []string{"v1beta1", "v1beta2"},
	}))
	g.Expect(v.Details.CRDs[0].Migrated()).To(BeFalse())
	g.Expect(v.Details.Events).To(HaveExactElements(HaveField("Reason", "New"), HaveField("Reason", "Old")))
	g.Expect(v.Details.Events[0].Message).To(Equal("first second"))
	g.Expect(v.Details.Unknown).To(BeEmpty())

	history, err := reader.History(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())

	data, err := json.Marshal([]any{v, history})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).NotTo(ContainSubstring(secretValue))
}

// TestHistory checks who created each revision, and why.
func TestHistory(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})

	history, err := reader.History(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(history).To(HaveExactElements(
		And(HaveField("By", "capstan"), HaveField("Reason", "2 objects adopted from v1.9.0"), HaveField("Health()", "yes")),
		And(
			HaveField("By", "helm"),
			HaveField("Reason", ""),
			HaveField("Description", "The record cannot be read: it is empty"),
			HaveField("Health()", "?"),
		),
		And(HaveField("By", "capstan"), HaveField("Reason", "rollback to revision 1"), HaveField("Health()", "no")),
	))
}

// TestUnknown checks that facts which cannot be read are named, and do not hide the others.
func TestUnknown(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		},
	})
	p.GetSpec().SecretName = "missing"

	v, err := reader.Detailed(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Details.Unknown).To(HaveExactElements(
		`variables: secrets "missing" not found`, "CRDs: forbidden", "events: forbidden",
	))
	g.Expect(v.Details.Variables).To(ContainElement(view.Variable{Name: "REGION", From: "spec.variables"}))
	g.Expect(v.Details.Images).NotTo(BeEmpty())
}

// TestRemote checks that the facts about a provider in another cluster are those in its resource.
func TestRemote(t *testing.T) {
	g := NewWithT(t)
	p, reader := sample(t, interceptor.Funcs{})
	p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
	p.GetStatus().Release = &v1alpha2.ReleaseStatus{Name: "elsewhere", Revision: 7}
	p.GetStatus().History = []v1alpha2.ReleaseRevision{{Number: 7, Version: "v2.0.0"}, {Number: 6}}

	v, err := reader.Detailed(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Remote).To(BeTrue())
	g.Expect(v.Release.Revision).To(BeEquivalentTo(7))
	g.Expect(v.Objects).To(BeEmpty())
	g.Expect(v.Details.CRDs).To(BeEmpty())

	history, err := reader.History(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(history).To(HaveExactElements(HaveField("Revision", 6), HaveField("Revision", 7)))
}
