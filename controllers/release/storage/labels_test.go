package storage

import (
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestLabelsReplaceCopiedOnes(t *testing.T) {
	g := NewWithT(t)
	copied := map[string]string{"team": "a", RevisionLabel: "1", "capstan.dev/older": "x"}

	g.Expect(labelsFor(2, copied)).To(Equal(map[string]string{"team": "a", RevisionLabel: "2"}))
	g.Expect(copied).To(HaveKeyWithValue(RevisionLabel, "1"), "the original is not changed")
}

func TestRevisionOf(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	changed := metav1.NewTime(created.Add(time.Minute))
	metadata := func(changes map[string]string) *metav1.ObjectMeta {
		labels := labelsFor(3, map[string]string{
			ownerLabel:  ownerHelm,
			nameLabel:   "core",
			numberLabel: "3",
			statusLabel: "deployed",
		})

		for key, value := range changes {
			labels[key] = value
		}

		return &metav1.ObjectMeta{
			Name:              helm.RecordName("core", 3),
			Labels:            labels,
			UID:               "uid",
			ResourceVersion:   "7",
			CreationTimestamp: created,
			ManagedFields:     []metav1.ManagedFieldsEntry{{Time: &created}, {Time: &changed}, {}},
		}
	}

	t.Run("own", func(t *testing.T) {
		g := NewWithT(t)
		revision, ok := RevisionOf(metadata(nil))
		g.Expect(ok).To(BeTrue())
		g.Expect(revision).To(Equal(state.Revision{
			ReleaseRevision: v1alpha2.ReleaseRevision{
				Number: 3, Status: v1alpha2.RevisionDeployed, Time: metav1.NewTime(created.Time),
				LastTransitionTime: metav1.NewTime(changed.Time),
			},
			Stored: v1alpha2.RevisionDeployed, Origin: 3, UID: "uid", ResourceVersion: "7",
		}))
	})

	t.Run("copied by helm", func(t *testing.T) {
		g := NewWithT(t)
		revision, ok := RevisionOf(metadata(map[string]string{RevisionLabel: "2"}))
		g.Expect(ok).To(BeTrue())
		g.Expect(revision.Ours()).To(BeFalse())
		g.Expect(revision.Origin).To(Equal(2))
	})

	for name, changes := range map[string]map[string]string{
		"no number":                   {numberLabel: ""},
		"not a number":                {numberLabel: "x"},
		"another number":              {numberLabel: "4"},
		"a record of another release": {nameLabel: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := RevisionOf(metadata(changes))
			NewWithT(t).Expect(ok).To(BeFalse())
		})
	}

	t.Run("a second Secret for the revision", func(t *testing.T) {
		second := metadata(nil)
		second.Name = "more." + second.Name
		_, ok := RevisionOf(second)
		NewWithT(t).Expect(ok).To(BeFalse())
	})
}

func TestIsChangedByOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"own":              {map[string]string{numberLabel: "2", RevisionLabel: "2", statusLabel: "deployed"}, false},
		"without a label":  {map[string]string{numberLabel: "2", statusLabel: "deployed"}, true},
		"with copied ones": {map[string]string{numberLabel: "2", RevisionLabel: "1", statusLabel: "deployed"}, true},
		"being removed":    {map[string]string{numberLabel: "2", RevisionLabel: "2", statusLabel: "uninstalling"}, true},
		"uninstalled":      {map[string]string{numberLabel: "2", RevisionLabel: "2", statusLabel: "uninstalled"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(IsChangedByOthers(tt.labels)).To(Equal(tt.want))
		})
	}
}

func TestSelector(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Selector("core")).To(Equal("name=core,owner=helm"))
	g.Expect(Selector("")).To(Equal("owner=helm"))
}

func TestFinishedJobs(t *testing.T) {
	g := NewWithT(t)
	job := object.Key{
		GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
		Namespace:        "ns",
		Name:             strings.Repeat("long-", 12) + "name",
	}
	other := job
	other.Name = "other"

	revision := state.Revision{}
	Finish(&revision, []object.Key{job})
	Finish(&revision, []object.Key{job})

	g.Expect(revision.FinishedJobs).To(HaveLen(1))
	g.Expect(IsFinished(revision, job)).To(BeTrue())
	g.Expect(IsFinished(revision, other)).To(BeFalse())
}

// TestStrip: what is kept of the metadata of an object that anybody may have written is small, and tells all that is
// read.
func TestStrip(t *testing.T) {
	written := metav1.NewTime(time.Unix(1, 0))
	object := func(labels map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "a", UID: "u", ResourceVersion: "1", Labels: labels,
			Annotations: map[string]string{
				"a": strings.Repeat("a", 1<<18), v1alpha2.CertificateNameAnnotation: "cert",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: strings.Repeat("a", 1<<18)}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: strings.Repeat("a", 1<<18), Time: &written}, {Time: &metav1.Time{}},
			},
		}}
	}
	kept := func(labels map[string]string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "n", Name: "a", UID: "u", ResourceVersion: "1", Labels: labels, OwnerReferences: owners,
			ManagedFields: []metav1.ManagedFieldsEntry{{Time: &written}},
			Annotations:   map[string]string{v1alpha2.CertificateNameAnnotation: "cert"},
		}
	}
	labels := map[string]string{RevisionLabel: "1", "team": "a"}
	large := map[string]string{RevisionLabel: "1", "team": strings.Repeat("a", maxLabels)}

	g := NewWithT(t)

	o := object(labels)
	Strip(o)
	g.Expect(o.ObjectMeta).To(Equal(kept(labels, metav1.OwnerReference{APIVersion: "v1", Kind: "Secret"})))

	o = object(large)
	Strip(o)
	g.Expect(o.ObjectMeta).To(Equal(kept(map[string]string{RevisionLabel: "1"})))
}

// TestRecordsTooFarAhead: a record whose number is far ahead of the last known revision was planted, and would keep all
// others from being the newest.
func TestRecordsTooFarAhead(t *testing.T) {
	record := func(number int) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: helm.RecordName("x", number), Labels: map[string]string{
				"owner": "helm", "name": "x", "version": strconv.Itoa(number), "status": "deployed",
			},
		}}
	}

	for last, want := range map[int]int{0: 2000, 3: 4, 1500: 2000} {
		store := New(nil, types.NamespacedName{Namespace: "ns", Name: "x"}, state.Memory{Last: last},
			[]metav1.PartialObjectMetadata{record(3), record(4), record(2000)})
		newest, _ := store.Newest()
		NewWithT(t).Expect(newest).To(Equal(want), "the last known revision is %d", last)
	}
}
