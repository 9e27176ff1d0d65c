package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/webhooks"
)

// trust is whether the API server trusts the webhooks of the newest revision: whether they have the CA of their
// Certificates, which cert-manager injects.
type trust struct {
	// known is set if that was found out. Otherwise the condition stays as it is, unless none is set: nothing is
	// injected, or the Secrets may not be read.
	known, none bool
	// problem is what webhooks have instead of the CA, and missing describes which; empty if all have it, or if the
	// problem is what the condition has said before. reason is that of the condition, and since is when they were first
	// seen without.
	problem string
	missing []string
	reason  string
	since   time.Time
	// gates is set if they had it until the newest revision was created: that is not healthy before they have it again.
	gates bool
}

// cause returns what Ready says; empty if all webhooks have their CA.
func (t trust) cause() string {
	if t.problem == "" {
		return ""
	}

	lack := fmt.Sprintf("%s since %s", t.problem, t.since.UTC().Format(time.DateTime+" MST"))
	if len(t.missing) > 0 {
		lack += ": " + clauses(t.missing...)
	}

	return lack + "; cert-manager's cainjector injects it, and its log may say why it does not"
}

// findTrust finds out whether the webhooks have the CA of their Certificates, once all other objects are healthy. It
// reads the Secret of a Certificate only if that is in doubt.
func (r *run) findTrust(ctx context.Context) error {
	r.installed.trust = trust{}

	if !r.installed.objectsHealthy() {
		return nil
	}

	all, err := r.injected(ctx)
	if err != nil {
		return err
	}

	found := trust{none: true}

	for certificate, injected := range all {
		one, err := r.trustIn(ctx, certificate, injected)
		if err != nil {
			return err
		}

		found = found.and(one)
	}

	r.installed.trust = r.since(found)

	return nil
}

// and returns the trust in the webhooks of two Certificates.
func (t trust) and(other trust) trust {
	t.none = t.none && other.none
	t.known = t.known || other.known
	t.problem = cmp.Or(t.problem, other.problem)
	t.missing = slices.Concat(t.missing, other.missing)
	slices.Sort(t.missing)

	return t
}

// since adds since when webhooks lack their CA, and what follows: they had it until now if the condition says so. While
// there is no Secret, they lack what they lacked before.
func (r *run) since(found trust) trust {
	before := v1alpha2.FindCondition(r.provider.GetConditions(), v1alpha2.WebhooksTrustedCondition)
	if before.Status == metav1.ConditionFalse && !found.known && !found.none {
		found.problem = before.Message
	}

	switch {
	case found.problem == "":
		return found
	case before.Status == metav1.ConditionFalse:
		found.since, found.reason = before.LastTransitionTime.Time, before.Reason
	case before.Status == metav1.ConditionTrue:
		found.since, found.reason = r.policy.Now.Truncate(time.Second), v1alpha2.CALostReason
	default:
		found.since, found.reason = r.policy.Now.Truncate(time.Second), v1alpha2.CAMissingReason
	}

	newest := r.installed.Newest
	found.gates = newest.Number > 1 && found.reason == v1alpha2.CALostReason && !found.since.Before(newest.Time.Time)

	return found
}

// injected returns the objects of the revision, and the CRDs of the provider, that cert-manager injects the CAs of the
// revision's Certificates into, by these.
func (r *run) injected(ctx context.Context) (map[types.NamespacedName][]webhooks.Injected, error) {
	var found []webhooks.Injected

	for _, o := range r.installed.health.Objects {
		if o.Injected != nil {
			found = append(found, *o.Injected)
		}
	}

	// Those of another cluster are not cached, and large.
	if !r.target.Remote {
		ofCRDs, err := r.target.CRDs.Injected(ctx, v1alpha2.Label(r.provider))
		if err != nil {
			return nil, err
		}

		found = append(found, ofCRDs...)
	}

	all := map[types.NamespacedName][]webhooks.Injected{}
	for _, i := range found {
		all[i.Certificate] = append(all[i.Certificate], i)
	}

	return all, nil
}

// trustIn returns whether webhooks have the CA of a Certificate.
func (r *run) trustIn(
	ctx context.Context, certificate types.NamespacedName, injected []webhooks.Injected,
) (trust, error) {
	secret, ok := r.secretOf(certificate)
	if !ok {
		return trust{none: true}, nil
	}

	var version string

	switch shown, known := r.secretShown(secret); {
	case known && shown == nil:
		return trust{}, nil // cert-manager has not issued it yet, or issues it again
	case known && !webhooks.Doubtful(injected, storage.LastWrite(shown.ManagedFields).Time),
		r.target.Remote && !webhooks.Doubtful(injected, time.Time{}):
		return trust{known: true}, nil
	case known:
		version = shown.ResourceVersion
	}

	cas, err := r.readCAs(ctx, secret, version)

	switch {
	case apierrors.IsNotFound(err):
		return trust{}, nil
	case apierrors.IsForbidden(err):
		return trust{none: true}, nil
	case err != nil:
		return trust{}, fmt.Errorf("read Secret %s: %w", secret, err)
	case len(cas) == 0:
		return trust{none: true}, nil // the issuer has no CA of its own
	}

	return r.compareCAs(secret, cas, injected), nil
}

// compareCAs returns whether webhooks have the CAs of a Secret. Others than those are a problem only if the webhooks
// have had these: otherwise another program than cert-manager may inject them.
func (r *run) compareCAs(secret types.NamespacedName, cas webhooks.CAs, injected []webhooks.Injected) trust {
	condition := v1alpha2.FindCondition(r.provider.GetConditions(), v1alpha2.WebhooksTrustedCondition)
	problem := "webhooks have no CA"

	var names []string

	for _, i := range injected {
		switch {
		case i.CAs.Include(cas):
			continue
		case len(i.CAs) > 0 && condition.Status == "":
			return trust{none: true}
		case len(i.CAs) > 0:
			problem = "webhooks have an outdated CA"
		}

		names = append(names, i.Object.String())
	}

	if len(names) == 0 {
		return trust{known: true}
	}

	slices.Sort(names)

	missing := fmt.Sprintf("that of Secret %s is missing in %s", secret, object.List(names, shownWebhooks))

	return trust{known: true, problem: problem, missing: []string{missing}}
}

// shownWebhooks is how many objects a message names.
const shownWebhooks = 2

// secretOf returns the Secret of a Certificate of the revision; false if the revision does not have the Certificate, or
// has it in another namespace, whose Secrets are not watched.
func (r *run) secretOf(certificate types.NamespacedName) (types.NamespacedName, bool) {
	for _, o := range r.installed.Record.Objects {
		name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		if name != certificate || o.GroupVersionKind().GroupKind() != webhooks.CertificateKind ||
			name.Namespace != r.provider.GetNamespace() {
			continue
		}

		secret, _, _ := unstructured.NestedString(o.Object, "spec", "secretName")

		return types.NamespacedName{Namespace: o.GetNamespace(), Name: secret}, secret != ""
	}

	return types.NamespacedName{}, false
}

// secretShown returns the metadata of a Secret as the watch of its namespace shows it; nil if it does not exist. That
// is not known in another cluster, and until there is a watch.
func (r *run) secretShown(secret types.NamespacedName) (shown *metav1.PartialObjectMetadata, known bool) {
	if r.target.Remote {
		return nil, false
	}

	return r.Watches.Get(namespaces.Secrets, secret)
}

// secretCAs are those of a version of a Secret.
type secretCAs struct {
	version string
	cas     webhooks.CAs
}

// readCAs returns the CAs of a Secret. They are remembered for its version, unless that is empty.
func (r *run) readCAs(ctx context.Context, name types.NamespacedName, version string) (webhooks.CAs, error) {
	if known, ok := r.memory.secrets[name]; ok && version != "" && known.version == version {
		return known.cas, nil
	}

	secret := &corev1.Secret{}
	if err := r.target.Client.Get(ctx, name, secret); err != nil {
		return nil, err
	}

	cas := webhooks.CAsOf(secret.Data["ca.crt"])

	if r.memory.secrets == nil {
		r.memory.secrets = map[types.NamespacedName]secretCAs{}
	}

	r.memory.secrets[name] = secretCAs{secret.ResourceVersion, cas}

	return cas, nil
}

// writeTrusted writes whether the API server trusts the webhooks. While it does not, the condition is as old as that.
func (r *run) writeTrusted(written *conditions) {
	found := r.installed.trust

	switch {
	case found.none:
		written.remove(v1alpha2.WebhooksTrustedCondition)
	case !found.known:
	case found.problem == "":
		written.markTrue(v1alpha2.WebhooksTrustedCondition, v1alpha2.CAInjectedReason,
			"The webhooks have the CA of their Certificates")
	default:
		written.markFalse(v1alpha2.WebhooksTrustedCondition, found.reason, "%s: %s", found.problem, clauses(found.missing...))
		written.backdate(v1alpha2.WebhooksTrustedCondition, found.since)
	}
}
