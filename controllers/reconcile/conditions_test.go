package reconcile

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// deployment returns a Deployment of a record, with annotations.
func deployment(annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	o.SetAnnotations(annotations)

	return o
}

// TestRefusedChangeOfCRDsIsWithdrawn: the condition about it lasts as long as the change is asked for.
func TestRefusedChangeOfCRDsIsWithdrawn(t *testing.T) {
	for outcome, kept := range map[Outcome]bool{Waiting: true, Stalled: true, Ready: false} {
		g := NewWithT(t)
		r := newTestRun(state.Revision{Number: 1, Origin: 1, Status: state.StatusDeployed})
		conditions.MarkFalse(r.provider, v1alpha2.CRDsSafeCondition, v1alpha2.UnsafeCRDsReason, "refused")

		_, err := r.end(Result{Outcome: outcome, Reason: v1alpha2.HealthyReason})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions.Has(r.provider, v1alpha2.CRDsSafeCondition)).To(Equal(kept), "outcome %d", outcome)
	}

	g := NewWithT(t)
	r := newTestRun(state.Revision{Number: 1, Origin: 1, Status: state.StatusDeployed})
	conditions.MarkTrue(r.provider, v1alpha2.CRDsSafeCondition, v1alpha2.CRDsCheckedReason, "checked")

	_, err := r.end(Result{Outcome: Ready, Reason: v1alpha2.HealthyReason})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conditions.IsTrue(r.provider, v1alpha2.CRDsSafeCondition)).To(BeTrue())
}

func TestPausedIsWhatTheNewestRevisionSays(t *testing.T) {
	scaledDown := deployment(map[string]string{v1alpha2.PausedReplicasAnnotation: "1"})

	runs := deployment(nil)

	type revision struct {
		status  state.Status
		paused  bool // its label
		objects []*unstructured.Unstructured
	}

	const deployed, failed = state.StatusDeployed, state.StatusFailed

	objects := func(o ...*unstructured.Unstructured) []*unstructured.Unstructured { return o }

	for name, test := range map[string]struct {
		revision revision
		before   bool
		want     bool
	}{
		"a paused revision":              {revision{deployed, true, objects(scaledDown)}, false, true},
		"... without Deployments":        {revision{deployed, true, nil}, false, true},
		"... of another program":         {revision{deployed, false, objects(scaledDown)}, false, true},
		"... that failed":                {revision{failed, true, objects(scaledDown)}, false, false},
		"... that failed, paused before": {revision{failed, true, objects(scaledDown)}, true, true},
		"a revision that runs":           {revision{deployed, false, objects(runs)}, true, false},
		"... in part":                    {revision{deployed, false, objects(scaledDown, runs)}, true, false},
		"... and failed":                 {revision{failed, false, objects(runs)}, true, false},
		"... without Deployments, again": {revision{deployed, false, nil}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(state.Revision{Number: 2, Origin: 2, Status: test.revision.status, Paused: test.revision.paused})
			r.installed.record.Objects = test.revision.objects

			if test.before {
				conditions.MarkTrue(r.provider, v1alpha2.PausedCondition, v1alpha2.PausedReason, "before")
			}

			r.writeConditions()
			NewWithT(t).Expect(conditions.IsTrue(r.provider, v1alpha2.PausedCondition)).To(Equal(test.want))
		})
	}
}

func TestContractIsThatOfTheNewestRevision(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(2, state.StatusDeployed, former))
	r.identified = true
	r.installed.record.Contract = "v1beta1"

	contract := "v1beta2"
	r.provider.GetStatus().Contract = &contract
	r.writeStatus()
	g.Expect(r.provider.GetStatus().Contract).To(HaveValue(Equal("v1beta1")))

	r.installed.record.Contract = ""
	r.writeStatus()
	g.Expect(r.provider.GetStatus().Contract).To(BeNil(), "a plain chart")

	r = newTestRun()
	r.provider.GetStatus().Contract = &contract
	r.writeStatus()
	g.Expect(r.provider.GetStatus().Contract).To(HaveValue(Equal("v1beta2")), "the records may be lost")

	r.uninstalled = true
	r.writeStatus()
	g.Expect(r.provider.GetStatus().Contract).To(BeNil(), "uninstalled")
}

// Every condition is written in one place, from what a run found out, so that two steps cannot
// contradict each other. What is being done meanwhile is written by package progress.
func TestConditionsAreWrittenInOnePlace(t *testing.T) {
	g := NewWithT(t)
	writes := regexp.MustCompile(`conditions\.(Mark|Set|Delete)`)

	var writers []string

	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}

		content, err := os.ReadFile(path)
		if writes.Match(content) {
			writers = append(writers, path)
		}

		return err
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writers).To(ConsistOf(
		"../reconcile/conditions.go", "../reconcile/result.go", "../reconcile/statuswriter.go"))
}
