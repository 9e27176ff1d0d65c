package attack

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
		tried:   "a ClusterRoleBinding that outlives the release",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.kept())) },
		after:   func(s *site) string { return s.install(nil) },
	},
	{
		tried:   "a ClusterRoleBinding, by a record like that of helm install with the provider's own chart",
		records: func(s *site) []*corev1.Secret { return s.one(s.helms(s.record(1, "deployed", s.kept()))) },
		after:   func(s *site) string { return s.install(s.stuck) },
	},
	{
		tried:   "the same, for a provider that has the annotation that accepts any release in Git",
		before:  (*site).acceptsAny,
		records: func(s *site) []*corev1.Secret { return s.one(s.helms(s.record(1, "deployed", s.kept()))) },
		after:   func(s *site) string { return s.install(nil) },
	},
	{
		tried: "the same, between the deletion of this provider and its next creation",
		before: func(s *site) {
			s.acceptsAny()
			s.installHealthy()
			s.Expect(s.remove()).To(Equal(gone))
		},
		records: func(s *site) []*corev1.Secret { return s.one(s.helms(s.record(1, "deployed", s.kept()))) },
		after:   func(s *site) string { return s.install(nil) },
	},
	{
		tried: "an object that exists, with fields that others have set and the provider does not have",
		before: func(s *site) {
			extended := s.extended()
			s.provide(extended)
			s.neverBecomes(extended, func(data map[string]string) bool { return data["secure"] == "" })
		},
		records: func(s *site) []*corev1.Secret {
			return s.one(s.helms(s.record(1, "deployed", note(s.name, s.home.namespace, "x")+"  secure: \"yes\"\n")))
		},
		after: func(s *site) string { return s.install(nil) },
	},
	{
		tried:   "for a provider whose source does not answer",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.binding())) },
		after:   func(s *site) string { return s.install(s.stuck) },
	},
	{
		tried:   "for a provider with an account that may do everything",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.binding())) },
		after: func(s *site) string {
			return s.install(func(spec *v1alpha2.ProviderSpec) {
				s.stuck(spec)
				spec.ServiceAccountName = "limited"
			})
		},
	},
	{
		tried:   "for a provider whose variables are missing",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.binding())) },
		after: func(s *site) string {
			return s.install(func(spec *v1alpha2.ProviderSpec) {
				spec.ConfigSecret = &v1alpha2.SecretReference{Name: "missing"}
			})
		},
	},
	{
		tried:   "an object of another namespace, and the provider is removed",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.preyed())) },
		after:   func(s *site) string { return s.install(nil) + "; then " + s.remove() },
	},
	{
		tried:   "the same, and the source does not answer",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.preyed())) },
		after:   func(s *site) string { return s.install(s.stuck) + "; then " + s.remove() },
	},
	{
		tried:   "the same, and the first revision fails",
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.preyed())) },
		after: func(s *site) string {
			return s.install(s.failing(v1alpha2.FailureNone)) + "; then " + s.remove()
		},
	},
	{
		tried: "between the deletion of the provider and its next creation",
		before: func(s *site) {
			s.installHealthy()
			s.Expect(s.remove()).To(Equal(gone))
		},
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.kept())) },
		after:   func(s *site) string { return s.install(nil) },
	},
	{
		tried:  "the same, with the labels of the former record, so that nothing seems to be left to do",
		before: (*site).installAndRemember,
		records: func(s *site) []*corev1.Secret {
			return s.one(s.labeled(s.record(1, "deployed", s.binding())))
		},
		after: func(s *site) string { return s.install(nil) },
	},
	{
		tried: "while the provider is suspended",
		before: func(s *site) {
			s.start(func(spec *v1alpha2.ProviderSpec) { spec.Suspend = true })
		},
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.kept())) },
		after:   func(s *site) string { return s.change(`{"suspend":false}`) },
	},
	{
		tried:   "above the record of a provider that is installed",
		before:  (*site).installHealthy,
		records: func(s *site) []*corev1.Secret { return s.one(s.record(2, "deployed", s.kept())) },
		after:   (*site).settle,
	},
	{
		tried:   "above such a record, with its labels and the UID of the resource",
		before:  (*site).installAndRead,
		records: func(s *site) []*corev1.Secret { return s.one(s.copied(2, s.record(2, "deployed", s.kept()))) },
		after:   (*site).settle,
	},
	{
		tried:  "the same, and the source does not answer",
		before: (*site).installAndRead,
		records: func(s *site) []*corev1.Secret {
			return s.one(s.copied(2, s.record(2, "deployed", s.binding())))
		},
		after: func(s *site) string {
			silent := "https://" + s.host + ":1/v1.0.0/infrastructure-components.yaml"
			return s.change(`{"fetchConfig":{"selector":null,"url":"` + silent + `"}}`)
		},
	},
	{
		tried:   "in place of the content of such a record",
		before:  (*site).installAndRead,
		records: func(s *site) []*corev1.Secret { return s.one(s.copied(1, s.record(1, "deployed", s.kept()))) },
		after:   (*site).settle,
	},
	{
		tried:   "the same, and the provider is paused",
		before:  (*site).installAndRead,
		records: func(s *site) []*corev1.Secret { return s.one(s.copied(1, s.record(1, "deployed", s.binding()))) },
		after:   func(s *site) string { return s.change(`{"paused":true}`) },
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
		tried:   "above such a record, while the annotation that accepts any release was forgotten on the resource",
		before:  (*site).installAndAccept,
		records: func(s *site) []*corev1.Secret { return s.one(s.copied(2, s.record(2, "deployed", s.kept()))) },
		after:   (*site).settle,
	},
	{
		tried:  "above such a record, with the highest number",
		before: (*site).installAndRead,
		records: func(s *site) []*corev1.Secret {
			return s.one(s.copied(1_000_000, s.record(1_000_000, "deployed", s.kept())))
		},
		after: (*site).settle,
	},
	{
		tried:   "the target of a rollback with which the provider is created",
		records: (*site).healthyBefore,
		after:   func(s *site) string { return s.install(rollingBack) },
	},
	{
		tried:   "the target of a rollback once the provider is installed",
		records: (*site).healthyBefore,
		after:   func(s *site) string { return s.install(nil) + "; then " + s.change(`{"release":{"rollbackTo":1}}`) },
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
	{
		tried: "the same, and no other revision",
		records: func(s *site) []*corev1.Secret {
			return s.one(s.record(1, "superseded", s.kept()))
		},
		after: func(s *site) string { return s.install(s.failing("")) },
	},
	{
		tried: "a revision that is marked failed, above one that is marked healthy",
		records: func(s *site) []*corev1.Secret {
			failed := s.unhealthy(2, "failed")
			failed.Labels[failureLabel] = string(v1alpha2.FailureUnhealthy)

			return []*corev1.Secret{s.record(1, "superseded", s.binding()), failed}
		},
		after: func(s *site) string { return s.install(s.stuck) },
	},
	{
		tried: "in the cluster of a kubeconfig",
		before: func(s *site) {
			remote := &corev1.ServiceAccount{ObjectMeta: named(s.home.namespace, "remote")}
			s.provide(remote)
			s.bind(s.T, "", "cluster-admin", account(remote.Namespace, remote.Name))

			kubeconfig := s.secretWith(s.remoteConfigOf(remote))
			kubeconfig.Namespace = s.home.namespace
			s.provide(kubeconfig)
		},
		records: func(s *site) []*corev1.Secret { return s.one(s.record(1, "deployed", s.kept())) },
		after: func(s *site) string {
			answer := s.install(func(spec *v1alpha2.ProviderSpec) {
				spec.KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
					LocalSecretReference: v1alpha2.LocalSecretReference{Name: "kc"}, Key: "value",
				}}
			})
			s.Expect(answer).NotTo(HavePrefix(v1alpha2.KubeConfigErrorReason))

			return answer
		},
	},
}

// acceptsAny makes the administrator create the provider with the annotation that accepts any release.
func (s *site) acceptsAny() {
	s.Helper()
	s.annotations = map[string]string{v1alpha2.AdoptReleaseAnnotation: "true"}
}

// extended is an object of the provider that others have created, and extended.
func (s *site) extended() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: named(s.home.namespace, s.name), Data: map[string]string{"text": "x", "secure": "yes"},
	}
}

// helms returns a record without what the operator adds to those of Helm.
func (s *site) helms(record *corev1.Secret) *corev1.Secret {
	maps.DeleteFunc(record.Labels, func(label, _ string) bool { return strings.HasPrefix(label, v1alpha2.Prefix) })

	return record
}

func (s *site) one(record *corev1.Secret) []*corev1.Secret { return []*corev1.Secret{record} }

// healthyBefore returns a revision that is marked healthy, with the binding, and one after it.
func (s *site) healthyBefore() []*corev1.Secret {
	return []*corev1.Secret{s.record(1, "superseded", s.kept()), s.unhealthy(2, "deployed")}
}

// unhealthy returns a revision that is not marked healthy, with an object of the provider's namespace.
func (s *site) unhealthy(revision int, status string) *corev1.Secret {
	record := s.record(revision, status, note(s.name, s.home.namespace, "x"))
	delete(record.Labels, healthyLabel)

	return record
}

// installAndRemember installs the provider, has the developer read the labels of its record, and removes it.
func (s *site) installAndRemember() {
	s.Helper()
	s.installAndRead()
	s.Expect(s.remove()).To(Equal(gone))
}

// installAndAccept is installAndRead, and has the administrator leave the annotation that accepts any release.
func (s *site) installAndAccept() {
	s.Helper()
	s.installAndRead()

	patch := `{"metadata":{"annotations":{"` + v1alpha2.AdoptReleaseAnnotation + `":"true"}}}`
	s.Expect(s.admin.Patch(s.ctx, s.home.resource(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	s.settle()
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
