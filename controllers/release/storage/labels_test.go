package storage

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

func TestLabelsReplaceCopiedOnes(t *testing.T) {
	g := NewWithT(t)
	digest := chart.Digest([]byte("a chart"))
	old := Labels{Holder: "old", Digest: "v1-old", Version: "v1.0.0", ChartDigest: digest, Paused: true, RollbackTo: 7,
		AdoptedVersion: "v0.9.0"}
	copied := old.appliedTo(map[string]string{"team": "a"}, 1)
	labels := Labels{Holder: strings.Repeat("long/", 30), Digest: "v1-new", Version: "v1.1.0+build"}.appliedTo(copied, 2)

	g.Expect(labels).To(HaveKeyWithValue("team", "a"))
	g.Expect(labels).To(HaveKeyWithValue(RevisionLabel, "2"))
	g.Expect(labels).To(HaveKeyWithValue(v1alpha2.DigestLabel, "v1-new"))
	g.Expect(labels).To(HaveKeyWithValue(ChartDigestLabel, ""))
	g.Expect(labels).NotTo(HaveKey(RollbackLabel))
	g.Expect(labels).NotTo(HaveKey(PausedLabel))
	g.Expect(labels).NotTo(HaveKey(AdoptedVersionLabel))

	for key, value := range labels {
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), key)
	}

	g.Expect(copied).To(HaveKeyWithValue(RevisionLabel, "1"), "the original is not changed")
}

func TestRevisionOf(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	changed := metav1.NewTime(created.Add(time.Minute))
	metadata := func(changes map[string]string) *metav1.ObjectMeta {
		own := Labels{Holder: "me", Digest: "v1-x", Version: "v1.0.0", Paused: true, RollbackTo: 1, AdoptedVersion: "v0.9.0"}
		labels := own.appliedTo(map[string]string{
			ownerLabel:   ownerHelm,
			nameLabel:    "core",
			numberLabel:  "3",
			statusLabel:  "deployed",
			HealthyLabel: "true",
		}, 3)
		labels[HealthyLabel] = "true"

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
			Number:          3,
			Status:          state.StatusDeployed,
			Origin:          3,
			Holder:          "me",
			Digest:          "v1-x",
			Version:         "v1.0.0",
			Healthy:         true,
			Paused:          true,
			RollbackTo:      1,
			AdoptedVersion:  "v0.9.0",
			Created:         created.Time,
			Changed:         changed.Time,
			UID:             "uid",
			ResourceVersion: "7",
		}))
	})

	for value, staged := range map[string]bool{waves.Place(-40).Label(): true, Complete: false} {
		t.Run("with the waves "+value, func(t *testing.T) {
			revision, _ := RevisionOf(metadata(map[string]string{StagedLabel: value}))
			NewWithT(t).Expect(revision.Staged).To(Equal(staged))
		})
	}

	t.Run("marked later", func(t *testing.T) {
		revision, _ := RevisionOf(metadata(map[string]string{
			AdoptedLabel: "2", FailureLabel: "Unhealthy",
			resourceLabel: "uid", homeLabel: "here", clusterLabel: "there",
		}))
		NewWithT(t).Expect(revision).To(And(
			HaveField("Adopted", 2),
			HaveField("Failure", state.FailureUnhealthy),
			HaveField("Owner", state.Owner{Resource: "uid", Home: "here", Cluster: "there"})))
	})

	t.Run("copied by helm", func(t *testing.T) {
		g := NewWithT(t)
		revision, ok := RevisionOf(metadata(map[string]string{RevisionLabel: "2"}))
		g.Expect(ok).To(BeTrue())
		g.Expect(revision.Ours()).To(BeFalse())
		g.Expect(revision).To(And(HaveField("Origin", 2), HaveField("Digest", ""), HaveField("Healthy", false)))
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

func TestDigestLabel(t *testing.T) {
	g := NewWithT(t)
	digest := chart.Digest([]byte("a chart"))
	label := encodeDigest(digest)
	g.Expect(validation.IsValidLabelValue(label)).To(BeEmpty())
	g.Expect(decodeDigest(label)).To(Equal(digest))

	for _, odd := range []string{"", "sha256:", "sha256:zz", "md5:0123", digest + "00"} {
		g.Expect(encodeDigest(odd)).To(BeEmpty(), odd)
		g.Expect(decodeDigest(odd)).To(BeEmpty(), odd)
	}
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

	labels := map[string]string{nameLabel: "core", numberLabel: "3"}

	for key, value := range FinishedJobLabels(3, []object.Key{job}) {
		g.Expect(validation.IsQualifiedName(key)).To(BeEmpty())
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty())

		labels[key] = value
	}

	revision, ok := RevisionOf(&metav1.ObjectMeta{Name: helm.RecordName("core", 3), Labels: labels})
	g.Expect(ok).To(BeTrue())
	g.Expect(IsFinished(revision, job)).To(BeTrue())
	g.Expect(IsFinished(revision, other)).To(BeFalse())

	labels[numberLabel] = "4"
	revision, ok = RevisionOf(&metav1.ObjectMeta{Name: helm.RecordName("core", 4), Labels: labels})
	g.Expect(ok).To(BeTrue())
	g.Expect(IsFinished(revision, job)).To(BeFalse(), "helm has copied the label to the next revision")

	applied := Labels{}.appliedTo(labels, 4)
	g.Expect(applied).NotTo(HaveKey(HavePrefix(finishedJobPrefix)), "copied labels do not accumulate")
}
