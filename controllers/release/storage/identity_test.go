package storage

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// identified returns a revision as it is when it is announced.
func identified() *helm.Release {
	return &helm.Release{
		Name: "core", Namespace: "capi-system", Version: 2,
		Info:     &helm.Info{Status: helm.StatusPendingUpgrade},
		Manifest: "kind: ConfigMap",
		Hooks: []*helm.Hook{{
			Name: "migrate", Kind: "Job", Path: "hook.yaml", Manifest: "kind: Job", Weight: 1,
			Events:         []helm.HookEvent{"pre-upgrade"},
			DeletePolicies: []helm.HookDeletePolicy{"hook-succeeded"},
		}},
		Chart: &helm.Chart{
			Metadata: &helm.Metadata{
				Name: "core", Version: "1.0.0", AppVersion: "v1.0.0",
				Annotations: map[string]string{chartgen.AnnotationContract: "v1beta2", "unknown": "x"},
			},
			Values: map[string]any{"replicas": 1, "large": int64(9007199254740993), "none": nil},
		},
		Config: map[string]any{"text": "a\xff", "list": []any{1, "b"}},
		Labels: map[string]string{RevisionLabel: "2"},
	}
}

func annotate(annotation string) func(*helm.Release) {
	return func(r *helm.Release) { r.Chart.Metadata.Annotations[annotation] = "x" }
}

func digestOf(g *WithT, rel *helm.Release) string {
	digest, err := Digest(rel)
	g.Expect(err).NotTo(HaveOccurred())

	return digest
}

// TestDigestCovers checks that a record that differs in what actions depend on is another revision.
func TestDigestCovers(t *testing.T) {
	covered := map[string]func(*helm.Release){
		"name":            func(r *helm.Release) { r.Name = "other" },
		"namespace":       func(r *helm.Release) { r.Namespace = "other" },
		"number":          func(r *helm.Release) { r.Version = 3 },
		"manifest":        func(r *helm.Release) { r.Manifest = "kind: Secret" },
		"another hook":    func(r *helm.Release) { r.Hooks = append(r.Hooks, &helm.Hook{Name: "more"}) },
		"hook's name":     func(r *helm.Release) { r.Hooks[0].Name = "other" },
		"hook's kind":     func(r *helm.Release) { r.Hooks[0].Kind = "Pod" },
		"hook's path":     func(r *helm.Release) { r.Hooks[0].Path = "other" },
		"hook's manifest": func(r *helm.Release) { r.Hooks[0].Manifest = "kind: Pod" },
		"hook's events": func(r *helm.Release) {
			r.Hooks[0].Events = []helm.HookEvent{"pre-delete"}
		},
		"hook's weight":        func(r *helm.Release) { r.Hooks[0].Weight = 2 },
		"hook's delete policy": func(r *helm.Release) { r.Hooks[0].DeletePolicies = nil },
		"chart's name":         func(r *helm.Release) { r.Chart.Metadata.Name = "other" },
		"chart's version":      func(r *helm.Release) { r.Chart.Metadata.Version = "2.0.0" },
		"chart's app version":  func(r *helm.Release) { r.Chart.Metadata.AppVersion = "v2.0.0" },
		"chart's contract":     annotate(chartgen.AnnotationContract),
		"chart's content":      annotate(chartgen.AnnotationContentID),
		"chart's patched CRDs": annotate(PatchedCRDsAnnotation),
		"default values":       func(r *helm.Release) { r.Chart.Values["replicas"] = 2 },
		"values":               func(r *helm.Release) { r.Config["text"] = "b" },
		"resource":             annotate(resourceAnnotation),
		"cluster":              annotate(clusterAnnotation),
		"resource's cluster":   annotate(homeAnnotation),
		"salt":                 annotate(saltAnnotation),
	}

	for name, change := range covered {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			changed := identified()
			change(changed)

			g.Expect(digestOf(g, changed)).NotTo(Equal(digestOf(g, identified())))
		})
	}
}

// TestDigestOfStored checks that a revision stays the same when it is stored, and when what it records of itself later
// changes: its status, labels, and the last runs of its hooks.
func TestDigestOfStored(t *testing.T) {
	g := NewWithT(t)
	want := digestOf(g, identified())
	g.Expect(want).To(MatchRegexp("^v1:[0-9a-f]{64}$"))

	secrets := fake.NewClientset().CoreV1().Secrets("capi-system")
	name := helm.RecordName("core", 2)

	changed := identified()
	changed.Info = &helm.Info{Status: helm.StatusDeployed, Description: "Upgrade complete", Notes: "hello"}
	changed.Hooks[0].LastRun.StartedAt = helm.At(time.Now())
	changed.Chart.Metadata.Annotations["unknown"] = "y"

	changed.Labels["team"] = "x"

	g.Expect(driver.NewSecrets(secrets).Create(helm.RecordName(changed.Name, changed.Version), changed)).To(Succeed())

	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	stored, err := Decode(secret, "core", 2)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(digestOf(g, stored)).To(Equal(want))
}

// TestRevisionIsAnnounced checks that a revision is known before its record exists, and that no record is unknown.
func TestRevisionIsAnnounced(t *testing.T) {
	g := NewWithT(t)
	secrets := fake.NewClientset().CoreV1().Secrets("capi-system")
	name := helm.RecordName("core", 2)
	refused := errors.New("the API server is not available")

	var announced []state.Revision

	announce := func(answer error) state.Announce {
		return func(_ context.Context, revision state.Revision, _ []object.Key) error {
			announced = append(announced, revision)
			_, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue())

			return answer
		}
	}

	release := types.NamespacedName{Namespace: "capi-system", Name: "core"}
	owner := state.Owner{Resource: "uid", Cluster: "there"}

	create := func(answer error) error {
		store := New(secrets, release, state.Memory{Owner: owner, Announce: announce(answer)}, nil)
		next, err := store.Next(state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{ContentDigest: "v1-x"}}, "", 0)
		g.Expect(err).NotTo(HaveOccurred())

		_, err = next.Create(t.Context(), identified(), Start{})

		return err
	}

	g.Expect(create(refused)).To(MatchError(refused))
	g.Expect(create(nil)).To(Succeed())

	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	stored, err := Decode(secret, "core", 2)
	g.Expect(err).NotTo(HaveOccurred())

	digest, err := Digest(stored)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(OwnerOf(stored)).To(Equal(owner))
	g.Expect(announced).To(HaveLen(2))
	g.Expect(announced[0].Digest).NotTo(Equal(digest), "a digest does not reveal values that can be guessed")
	g.Expect(announced[1]).To(Equal(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: 2, ContentDigest: "v1-x", Status: v1alpha2.RevisionPendingUpgrade, Digest: digest,
		},
		Origin: 2,
	}))
}

func TestInputDigestIsSalted(t *testing.T) {
	g := NewWithT(t)
	g.Expect(InputDigest("a", []byte("x"))).To(And(HaveLen(16), Equal(InputDigest("a", []byte("x")))))
	g.Expect(InputDigest("b", []byte("x"))).NotTo(Equal(InputDigest("a", []byte("x"))))
}
