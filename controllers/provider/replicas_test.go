package provider

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
)

func TestKeptImages(t *testing.T) {
	published := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "a", "name": "b"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "manager", "image": "example.com/b:v1.1.0"},
			map[string]any{"name": "proxy", "image": "example.com/proxy:v1"},
		}}}},
	}}

	for name, test := range map[string]struct {
		found map[string]string
		want  []string
	}{
		"all are those of the revision": {found: health.Images(published)},
		"one is of another version": {
			found: map[string]string{"manager": "example.com/b:v1.0.0", "proxy": "example.com/proxy:v1", "injected": "c"},
			want: []string{"container manager of Deployment a/b stays at the image example.com/b:v1.0.0 instead of " +
				"example.com/b:v1.1.0"},
		},
		"the object does not exist": {},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(keptImages(published, health.Result{Images: test.found})).To(Equal(test.want))
		})
	}
}

// TestFindReplicas checks that looking again, as after drift is corrected, finds what is there now.
func TestFindReplicas(t *testing.T) {
	g := NewWithT(t)
	paused := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(0)},
	}}
	paused.SetAnnotations(map[string]string{v1alpha2.PausedReplicasAnnotation: "1"})

	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.installed.Record.Objects = []*unstructured.Unstructured{paused}
	find := func(found int64) replicas {
		r.installed.health = &health.Report{Objects: []health.ObjectHealth{{
			Object: object.KeyOf(paused), Result: health.Result{Status: status.CurrentStatus, Replicas: found},
		}}}
		g.Expect(r.findReplicas(t.Context())).To(Succeed())

		return r.installed.replicas
	}

	first := find(1)
	g.Expect(first.running).To(BeTrue())
	g.Expect(first.wrong).To(ConsistOf(ContainSubstring("has spec.replicas 1 instead of 0")))
	g.Expect(find(1)).To(Equal(first))
	g.Expect(find(0)).To(BeZero())
}

// TestContradicts: replicas are wrong if a workload runs although it is paused, or does not although it is not.
func TestContradicts(t *testing.T) {
	for name, c := range map[string]struct {
		found, wanted int64
		paused, want  bool
	}{
		"as many as it has":         {2, 2, false, false},
		"another number":            {1, 2, false, false},
		"scaled to zero":            {0, 2, false, true},
		"none, as the revision has": {0, 0, false, false},
		"paused":                    {0, 0, true, false},
		"scaled up although paused": {1, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(contradicts(c.found, c.wanted, c.paused)).To(Equal(c.want))
		})
	}
}
