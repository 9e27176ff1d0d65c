package attack

import (
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Labels that may seem to mean something to the operator, which has only one of its own on records.
const (
	healthyLabel = v1alpha2.Prefix + "/healthy"
	failureLabel = v1alpha2.Prefix + "/failure"
)

// marked are plots that change only labels of the operator's records.
var marked = []plot{
	{
		tried: "labels that say that the newest revision has failed, so that it would be rolled back",
		before: func(s *site) {
			s.installTwice()
			s.neverRevised(3)
		},
		records: func(s *site) []*corev1.Secret {
			failure := string(v1alpha2.FailureUnhealthy)
			return s.relabeled(2, "status", "failed", failureLabel, failure, healthyLabel, "")
		},
		after: (*site).correct,
	},
	{
		tried: "a record that is written again and again, so that the deadline of its revision never passes",
		before: func(s *site) {
			p := s.home.resource()
			s.failing("")(&p.Spec)
			s.provide(s.home.configMap(), p)
			s.awaitRevision(1, "deployed")
		},
		records: func(s *site) []*corev1.Secret { return s.relabeled(1) },
		after:   (*site).postpone,
	},
}

// postpone writes to the record of the first revision until the revision has failed, and returns the operator's answer.
func (s *site) postpone() string {
	s.Helper()

	p := s.home.resource()
	s.Eventually(func(g Gomega) {
		record := s.live(1)
		record.Annotations = map[string]string{"example.com/written": time.Now().String()}
		g.Expect(s.admin.Update(s.ctx, record)).To(Succeed())

		g.Expect(s.admin.Get(s.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		g.Expect(readyReason(p)).NotTo(HavePrefix(v1alpha2.ProgressingReason))
	}).Should(Succeed(), "the revision does not fail")

	return readyReason(p)
}

// installTwice installs the provider in two healthy revisions.
func (s *site) installTwice() {
	s.Helper()
	s.home.extra = "---\n" + note(s.name+"-${TEXT:=one}", s.home.namespace, "x")
	s.installHealthy()
	s.change(`{"variables":{"TEXT":"two"}}`)
	s.awaitRevision(2, "deployed")

	p := s.home.resource()
	s.Eventually(func(g Gomega) {
		g.Expect(s.admin.Get(s.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		g.Expect(p.Status.History[0]).To(And(HaveField("Number", 2), HaveField("Healthy", BeTrue())))
	}).Should(Succeed())
}

// live returns the record of a revision.
func (s *site) live(revision int) *corev1.Secret {
	record := s.home.recordOf(revision, "", nil)
	_ = s.admin.Get(s.ctx, client.ObjectKeyFromObject(record), record)

	return record
}

// awaitRevision waits until a revision has a status.
func (s *site) awaitRevision(revision int, status string) {
	s.Helper()
	s.Eventually(func() string { return s.live(revision).Labels["status"] }).Should(Equal(status))
}

// relabeled returns the record of a revision with other labels, given as names and values; empty values remove them.
func (s *site) relabeled(revision int, labels ...string) []*corev1.Secret {
	record := s.live(revision)
	record.ObjectMeta = metav1.ObjectMeta{Namespace: record.Namespace, Name: record.Name, Labels: record.Labels}

	for pair := range slices.Chunk(labels, 2) {
		record.Labels[pair[0]] = pair[1]
		if pair[1] == "" {
			delete(record.Labels, pair[0])
		}
	}

	return s.one(record)
}

// correct has the operator correct an object of the release twice, so that it has looked at the records since, and
// returns its answer.
func (s *site) correct() string {
	s.Helper()

	for range 2 {
		lost := &corev1.ConfigMap{ObjectMeta: named(s.home.namespace, s.name)}
		s.Expect(s.admin.Delete(s.ctx, lost)).To(Succeed())
		s.Eventually(func() error { return s.admin.Get(s.ctx, client.ObjectKeyFromObject(lost), lost) }).Should(Succeed())
	}

	p := s.home.resource()
	s.Expect(s.admin.Get(s.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())

	return readyReason(p)
}

// neverRevised declares that a revision must not be created.
func (s *site) neverRevised(number int) {
	s.neverExists(&corev1.Secret{ObjectMeta: s.home.recordOf(number, "", nil).ObjectMeta})
}
