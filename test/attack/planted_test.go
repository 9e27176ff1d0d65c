package attack

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// plantedAttempts plant Helm's records in a namespace before an administrator has a provider there, or change those of
// the operator.
var plantedAttempts = slices.Concat(
	planted("Planted by a developer: ", plots), planted("Changed by a developer: ", marked))

// plot is an attempt to have the operator apply planted records.
type plot struct {
	tried string
	// before is done before the records are planted; it may be nil.
	before func(*site)
	// records are what is planted.
	records func(*site) []*corev1.Secret
	// after is what the administrator does later. It returns the operator's answer.
	after func(*site) string
}

// planted returns the plots as attempts in which a developer plants the records.
func planted(by string, plots []plot) []attempt {
	var all []attempt

	for _, p := range plots {
		all = append(all, attempt{by + p.tried, func(a *arena) string {
			s := a.site()
			if p.before != nil {
				p.before(s)
			}

			for _, record := range p.records(s) {
				err := s.developer.Create(a.ctx, record)
				if apierrors.IsAlreadyExists(err) {
					err = s.developer.Update(a.ctx, record)
				}

				a.Expect(err).NotTo(HaveOccurred())
			}

			return p.after(s)
		}})
	}

	return all
}

var plots = []plot{
	{
		tried:   "a ClusterRoleBinding",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.binding())) },
		after:   func(s *site) string { return s.install(nil) },
	},
	{
		tried:   "a ClusterRoleBinding, for a provider that has the annotation that accepts any release in Git",
		before:  (*site).acceptsAny,
		records: func(s *site) []*corev1.Secret { return s.one(s.helms(s.record(1, "deployed", s.kept()))) },
		after:   func(s *site) string { return s.install(nil) },
	},
	{
		tried:   "an object of another namespace, and the provider is removed",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.preyed())) },
		after:   func(s *site) string { return s.install(nil) + "; then " + s.remove() },
	},
	{
		tried:  "a ClusterRoleBinding, with the labels of the former record of a provider that was deleted",
		before: (*site).installAndRemember,
		records: func(s *site) []*corev1.Secret {
			return s.one(s.labeled(s.record(1, "deployed", s.binding())))
		},
		after: func(s *site) string { return s.install(nil) },
	},
	{
		tried:   "a record above that of a provider that is installed, with its labels and the UID of the resource",
		before:  (*site).installAndRead,
		records: func(s *site) []*corev1.Secret { return s.one(s.copied(2, s.record(2, "deployed", s.kept()))) },
		after:   (*site).settle,
	},
	{
		tried:   "in place of the content of the record of a provider that is installed",
		before:  (*site).installAndRead,
		records: func(s *site) []*corev1.Secret { return s.one(s.copied(1, s.record(1, "deployed", s.kept()))) },
		after:   (*site).settle,
	},
	{
		tried: "in place of the content of a record that a rollback returns to",
		before: func(s *site) {
			s.installAndRead()
			s.change(`{"release":{"timeout":"4m"},"paused":true}`)
		},
		records: func(s *site) []*corev1.Secret { return s.one(s.copied(1, s.record(1, "superseded", s.kept()))) },
		after:   func(s *site) string { return s.change(`{"paused":false,"release":{"rollbackTo":1}}`) },
	},
	{
		tried: "the target of an automatic rollback, marked healthy",
		records: func(s *site) []*corev1.Secret {
			unavailable := s.record(2, "deployed", s.unavailable())
			delete(unavailable.Labels, healthyLabel)

			return []*corev1.Secret{s.record(1, "superseded", s.kept()), unavailable}
		},
		after: func(s *site) string { return s.install(s.failing("")) },
	},
}

// acceptsAny makes the administrator create the provider with the annotation that accepts any release.
func (s *site) acceptsAny() {
	s.Helper()
	s.annotations = map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"}
}

// helms returns a record without what the operator adds to those of Helm.
func (s *site) helms(record *corev1.Secret) *corev1.Secret {
	maps.DeleteFunc(record.Labels, func(label, _ string) bool { return strings.HasPrefix(label, v1alpha2.Prefix) })

	return record
}

func (s *site) one(record *corev1.Secret) []*corev1.Secret { return []*corev1.Secret{record} }

// installAndRemember installs the provider, has the developer read the labels of its record, and removes it.
func (s *site) installAndRemember() {
	s.Helper()
	s.installAndRead()
	s.Expect(s.remove()).To(Equal(gone))
}

// copied gives a record the labels of one that the operator has written for the resource.
func (s *site) copied(revision int, record *corev1.Secret) *corev1.Secret {
	number, status := strconv.Itoa(revision), record.Labels["status"]
	record = s.labeled(record)
	record.Labels["version"], record.Labels["status"], record.Labels[storage.RevisionLabel] = number, status, number
	record.Labels[healthyLabel] = "true"

	return record
}

// installAndRead installs the provider, and has the developer read the labels of its record.
func (s *site) installAndRead() {
	s.Helper()
	s.installHealthy()

	record := &corev1.Secret{ObjectMeta: s.record(1, "deployed", "").ObjectMeta}
	s.Expect(s.developer.Get(s.ctx, client.ObjectKeyFromObject(record), record)).To(Succeed())
	s.Expect(record.Labels).To(HaveKey(storage.RevisionLabel))
	s.labels = record.Labels
}

// labeled gives a record the labels of one that the operator has written.
func (s *site) labeled(record *corev1.Secret) *corev1.Secret {
	record.Labels = maps.Clone(s.labels)

	return record
}
