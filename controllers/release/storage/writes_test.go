package storage

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1api "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// storeOf returns a store of revisions with these statuses and manifests, the oldest first.
func storeOf(t *testing.T, secrets corev1.SecretInterface, revisions ...[2]string) *Store {
	t.Helper()

	for i, r := range revisions {
		rel := &helm.Release{
			Name: "x", Namespace: "ns", Version: i + 1, Manifest: r[1], Info: &helm.Info{Status: helm.Status(r[0])},
		}
		NewWithT(t).Expect(driver.NewSecrets(secrets).Create(helm.RecordName(rel.Name, rel.Version), rel)).To(Succeed())
	}

	return open(t, secrets, state.Memory{})
}

// open returns a store of what is stored.
func open(t *testing.T, secrets corev1.SecretInterface, memory state.Memory) *Store {
	t.Helper()

	list, err := secrets.List(t.Context(), metav1.ListOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	records := make([]metav1.PartialObjectMetadata, 0, len(list.Items))
	for _, secret := range list.Items {
		records = append(records, metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta})
	}

	return New(secrets, types.NamespacedName{Namespace: "ns", Name: "x"}, memory, records)
}

// create creates the next revision of a store.
func create(t *testing.T, store *Store, rel *helm.Release) (state.Revision, error) {
	t.Helper()

	next, err := store.Next(state.Revision{}, "", 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return next.Create(t.Context(), rel, Start{})
}

// find returns a revision that can be decoded.
func find(t *testing.T, store *Store, revision int) *helm.Release {
	t.Helper()

	rel, err := store.Find(revision)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return rel
}

// TestSameSecretsAsHelm: a revision is stored and changed as Helm's own programs do it.
func TestSameSecretsAsHelm(t *testing.T) {
	g := NewWithT(t)
	ours, theirs := fake.NewClientset().CoreV1().Secrets("ns"), fake.NewClientset().CoreV1().Secrets("ns")
	written, reference := &secrets{SecretInterface: ours, versions: map[string]string{}}, driver.NewSecrets(theirs)
	key := helm.RecordName("x", 1)

	rel := &helm.Release{
		Name: "x", Namespace: "ns", Version: 1, Manifest: "a: b", Info: &helm.Info{Status: helm.StatusPendingInstall},
		Labels: map[string]string{"team": "one"},
	}

	expectSame := func() {
		got, err := ours.Get(t.Context(), key, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		want, err := theirs.Get(t.Context(), key, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		for _, label := range []string{createdLabel, modifiedLabel} {
			if _, has := want.Labels[label]; has {
				g.Expect(got.Labels).To(HaveKeyWithValue(label, Not(BeEmpty())))
				want.Labels[label] = got.Labels[label] // another second
			}
		}

		g.Expect(got.Labels).To(Equal(want.Labels))
		g.Expect(got.Type).To(Equal(want.Type))
		g.Expect(got.Data).To(Equal(want.Data))
	}

	g.Expect(written.create(t.Context(), rel)).To(Succeed())
	g.Expect(reference.Create(key, rel)).To(Succeed())
	expectSame()

	rel.Info.Status = helm.StatusDeployed
	g.Expect(written.update(t.Context(), rel)).To(Succeed())
	g.Expect(reference.Update(key, rel)).To(Succeed())
	expectSame()
}

// TestLimit checks that the limit of the history deletes the oldest revisions, but none that is needed.
func TestLimit(t *testing.T) {
	for name, test := range map[string]struct {
		revisions [][2]string
		limit     int
		want      []int
	}{
		"none is too old": {[][2]string{{"superseded", "a"}, {"deployed", "b"}}, 3, []int{1, 2}},
		"old ones":        {[][2]string{{"superseded", "a"}, {"superseded", "b"}, {"deployed", "c"}}, 2, []int{3}},
		"the deployed one": {
			[][2]string{{"superseded", "a"}, {"deployed", "b"}, {"failed", "c"}, {"failed", "d"}}, 1, []int{2, 4},
		},
		"attempts of the same": {
			[][2]string{{"deployed", "a"}, {"failed", "b"}, {"failed", "b"}, {"failed", "b"}}, 2, []int{1, 4},
		},
		"all but the newest one": {
			[][2]string{{"failed", "a"}, {"superseded", "b"}, {"failed", "c"}}, 1, []int{3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			store := storeOf(t, fake.NewClientset().CoreV1().Secrets("ns"), test.revisions...)
			g.Expect(store.Limit(test.limit)).To(Succeed())
			g.Expect(store.Numbers()).To(Equal(test.want))
		})
	}
}

// emptyChart returns the chart of a record whose content does not matter.
func emptyChart() *helm.Chart { return &helm.Chart{Metadata: &helm.Metadata{}} }

// TestEnd checks which revision is deployed after an action.
func TestEnd(t *testing.T) {
	g := NewWithT(t)
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	store := storeOf(t, secrets, [2]string{"deployed", "a"}, [2]string{"failed", "b"}, [2]string{"deployed", "c"})

	rel := &helm.Release{
		Name: "x", Namespace: "ns", Version: 4, Info: &helm.Info{Status: helm.StatusPendingUpgrade}, Chart: emptyChart(),
	}
	created, err := create(t, store, rel)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(store.Supersede(4)).To(Succeed())
	g.Expect(store.End(t.Context(), rel, created, Outcome{Description: "Upgrade complete", Adopted: 2})).To(Succeed())

	var statuses []string

	for number := 1; number <= 4; number++ {
		secret, err := secrets.Get(t.Context(), helm.RecordName("x", number), metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())

		statuses = append(statuses, secret.Labels[statusLabel])
	}

	g.Expect(statuses).To(Equal([]string{"superseded", "failed", "superseded", "deployed"}))
	g.Expect(rel.Info.Description).To(Equal("Upgrade complete; adopted 2 existing objects"))
}

// TestResume: an attempt that failed for a passing reason is written again, also if the record before it was deleted.
func TestResume(t *testing.T) {
	for name, deleted := range map[string][]int{"all records": nil, "the record before it is gone": {2}, "alone": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secrets := fake.NewClientset().CoreV1().Secrets("ns")
			storeOf(t, secrets, [2]string{"superseded", "a"}, [2]string{"deployed", "b"})

			failed := &helm.Release{
				Name: "x", Namespace: "ns", Version: 3, Info: &helm.Info{Status: helm.StatusFailed},
				Labels: labelsFor(3, nil), Chart: emptyChart(),
			}
			sign(failed, "salt", state.Owner{})

			before, err := Digest(failed)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(driver.NewSecrets(secrets).Create(helm.RecordName(failed.Name, failed.Version), failed)).To(Succeed())

			for _, number := range deleted {
				g.Expect(secrets.Delete(t.Context(), helm.RecordName("x", number), metav1.DeleteOptions{})).To(Succeed())
			}

			memory := state.Memory{Revisions: []state.Revision{{
				ReleaseRevision: v1alpha2.ReleaseRevision{
					Number: 3, ContentDigest: "x", Failure: v1alpha2.FailureUnavailable, AdoptedVersion: "v0",
				},
			}}}
			memory.Announce = func(_ context.Context, revision state.Revision, _ []object.Key) error {
				g.Expect(revision.AdoptedVersion).To(Equal("v0"))
				g.Expect(revision.Digest).To(Equal(before), "the record stays known, also if it is not written again")

				return nil
			}

			again := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{ContentDigest: "x"}}
			next, err := open(t, secrets, memory).Next(again, "", 0)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(next.Number).To(Equal(3))

			failed.Chart, failed.Info = emptyChart(), &helm.Info{Status: helm.StatusPendingUpgrade}
			g.Expect(next.Create(t.Context(), failed, Start{AdoptedVersion: "v1"})).Error().NotTo(HaveOccurred())
			g.Expect(storeOf(t, secrets).Numbers()).To(HaveLen(3 - len(deleted)))
		})
	}
}

// TestSettle: the newest record says afterwards how its action has ended, as the status of the resource knows, or that
// it was interrupted.
func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		stored, known v1alpha2.RevisionStatus
		failure       v1alpha2.RevisionFailure
		want, reason  string
	}{
		"over":        {"deployed", "deployed", "", "deployed", ""},
		"failed":      {"failed", "failed", v1alpha2.FailureRejected, "failed", ""},
		"not known":   {"pending-upgrade", "", "", "failed", "Interrupted: killed"},
		"interrupted": {"pending-upgrade", "pending-upgrade", "", "failed", "Interrupted: killed"},
		"a failure of an action is lost": {
			"pending-install", "failed", v1alpha2.FailureUnavailable, "failed", "Failed: the API server, or a webhook, did not",
		},
		"a failure of a deployed one is lost": {
			"deployed", "failed", v1alpha2.FailureUnhealthy, "failed", "Failed: its objects did not become healthy in time",
		},
		"a success is lost":           {"pending-upgrade", "deployed", "", "deployed", "Complete: "},
		"uninstalled by another":      {"uninstalled", "uninstalled", "", "failed", "Interrupted: killed"},
		"failed by another meanwhile": {"failed", "pending-upgrade", "", "failed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secrets := fake.NewClientset().CoreV1().Secrets("ns")
			storeOf(t, secrets, [2]string{"superseded", "a"}, [2]string{string(c.stored), "b"})

			known := v1alpha2.ReleaseRevision{Number: 2, Status: c.known, Failure: c.failure}

			if c.known != "" {
				known.Digest = "v1:known"
			}

			store := open(t, secrets, state.Memory{Revisions: []state.Revision{{ReleaseRevision: known}}})
			g.Expect(store.Settle("killed")).To(Succeed())

			settled := find(t, storeOf(t, secrets), 2)
			g.Expect(string(settled.Info.Status)).To(Equal(c.want))
			g.Expect(settled.Info.Description).To(HavePrefix(c.reason))
		})
	}
}

// TestNumbers: a revision gets the number after the last one, whether its record is there or not, and whatever other
// Secrets are called. Records that are far ahead do not count.
func TestNumbers(t *testing.T) {
	g := NewWithT(t)
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	storeOf(t, secrets, [2]string{"superseded", "a"}, [2]string{"deployed", "b"})

	far := &helm.Release{Name: "x", Namespace: "ns", Version: 1006, Info: &helm.Info{Status: helm.StatusDeployed}}
	g.Expect(driver.NewSecrets(secrets).Create(helm.RecordName(far.Name, far.Version), far)).To(Succeed())

	for _, taken := range []int{6, 7} {
		other := &corev1api.Secret{ObjectMeta: metav1.ObjectMeta{Name: helm.RecordName("x", taken)}}
		_, err := secrets.Create(t.Context(), other, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}

	var announced []int

	memory := state.Memory{Last: 5}
	memory.Announce = func(_ context.Context, revision state.Revision, _ []object.Key) error {
		announced = append(announced, revision.Number)
		return nil
	}

	store := open(t, secrets, memory)
	next, err := store.Next(state.Revision{}, "", 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next.Number).To(Equal(6))

	rel := &helm.Release{
		Name: "x", Namespace: "ns", Version: 6, Info: &helm.Info{Status: helm.StatusPendingUpgrade}, Chart: emptyChart(),
	}
	g.Expect(next.Create(t.Context(), rel, Start{})).Error().NotTo(HaveOccurred())
	g.Expect(rel.Version).To(Equal(8))
	g.Expect(announced).To(Equal([]int{6, 7, 8}))

	// Another program has been faster.
	late := New(secrets, types.NamespacedName{Namespace: "ns", Name: "x"}, state.Memory{}, nil)
	rel = &helm.Release{
		Name: "x", Namespace: "ns", Version: 8, Info: &helm.Info{Status: helm.StatusPendingUpgrade}, Chart: emptyChart(),
	}
	_, err = create(t, late, rel)
	g.Expect(err).To(MatchError(ErrChanged))
}

// TestInherit: a revision was first deployed when the release was, through all revisions that tell it, and has the
// labels that users have added to the newest one. A copy for a rollback has those of its target.
func TestInherit(t *testing.T) {
	g := NewWithT(t)
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	first := helm.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

	for number, info := range []*helm.Info{{FirstDeployed: first}, {FirstDeployed: first}, {}} {
		rel := &helm.Release{
			Name: "x", Namespace: "ns", Version: number + 1, Info: info,
			Labels: map[string]string{"team": strconv.Itoa(number + 1)},
		}
		rel.Info.Status = helm.StatusSuperseded
		g.Expect(driver.NewSecrets(secrets).Create(helm.RecordName(rel.Name, rel.Version), rel)).To(Succeed())
	}

	store := storeOf(t, secrets)

	rel := &helm.Release{Info: &helm.Info{}}
	g.Expect(store.Inherit(rel)).To(Succeed())
	g.Expect(rel.Info.FirstDeployed.Equal(first)).To(BeTrue(), "the newest one does not tell it")
	g.Expect(rel.Labels).To(HaveKeyWithValue("team", "3"))

	rel, err := store.Copy(find(t, store, 1), 4)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rel.Version).To(Equal(4))
	g.Expect(rel.Info.FirstDeployed.Equal(first)).To(BeTrue())
	g.Expect(rel.Labels).To(HaveKeyWithValue("team", "1"))
}

// TestOversizeRecord: a record that could not be written again after the objects were applied is not created.
func TestOversizeRecord(t *testing.T) {
	g := NewWithT(t)
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	store := storeOf(t, secrets)

	random := make([]byte, 720<<10) // 94 % of a Secret
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)

	rel := &helm.Release{
		Name: "x", Namespace: "ns", Version: 1, Info: &helm.Info{}, Chart: emptyChart(),
		Config: map[string]any{"large": random},
	}
	_, err := create(t, store, rel)
	g.Expect(err).To(MatchError(MatchRegexp(
		`^Helm's record in Secret ns/sh\.helm\.release\.v1\.x\.v1 could not be stored: it takes 96\d KiB, and may take ` +
			`921 KiB, 90 % of a Secret; reduce the chart`)))
	g.Expect(secrets.List(t.Context(), metav1.ListOptions{})).To(HaveField("Items", BeEmpty()))
}

// TestProtectHealthy: the newest revision that is known to have been healthy is kept.
func TestProtectHealthy(t *testing.T) {
	g := NewWithT(t)
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	storeOf(t, secrets, [2]string{"superseded", "a"}, [2]string{"superseded", "b"}, [2]string{"failed", "c"})

	store := open(t, secrets, state.Memory{Revisions: []state.Revision{
		{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Healthy: true}},
	}})
	g.Expect(store.Limit(2)).To(Succeed())
	g.Expect(store.Numbers()).To(Equal([]int{1, 3}))
}

// TestFailureIsAnnounced: that a revision has failed is known before its record says so. Success is found out again.
func TestFailureIsAnnounced(t *testing.T) {
	rejected := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Failure: v1alpha2.FailureRejected, Status: v1alpha2.RevisionFailed},
	}

	for name, c := range map[string]struct {
		outcome Outcome
		refused bool
		want    state.Revision
		status  string
	}{
		"success":          {Outcome{}, false, state.Revision{}, "deployed"},
		"failure":          {Outcome{Failure: v1alpha2.FailureRejected}, false, rejected, "failed"},
		"failure, refused": {Outcome{Failure: v1alpha2.FailureRejected}, true, rejected, "pending-install"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			secrets := fake.NewClientset().CoreV1().Secrets("ns")
			storeOf(t, secrets, [2]string{"pending-install", "a"})

			var announced state.Revision

			announce := func(_ context.Context, revision state.Revision, _ []object.Key) error {
				announced = revision

				if c.refused {
					return errors.New("refused")
				}

				return nil
			}
			store := open(t, secrets, state.Memory{Announce: announce})

			rel := find(t, store, 1)
			rel.Labels = map[string]string{}
			g.Expect(store.End(t.Context(), rel, state.Revision{}, c.outcome) == nil).To(Equal(!c.refused))

			announced.Digest = ""
			g.Expect(announced).To(Equal(c.want))

			secret, err := secrets.Get(t.Context(), helm.RecordName("x", 1), metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(secret.Labels["status"]).To(Equal(c.status))
		})
	}
}
