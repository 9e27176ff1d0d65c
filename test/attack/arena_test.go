package attack

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// patience is how long the operator may take to answer on this machine, which may be loaded.
const patience = 3 * time.Minute

// arena is where one attempt takes place.
type arena struct {
	*testing.T
	Gomega
	*world

	ctx context.Context
	// name is unique to the attempt: its provider's name, and part of the names of other objects.
	name    string
	effects []effect
}

// effect is something that would be a success of the attacker.
type effect struct {
	tried, what string
	happened    func(context.Context) bool
}

func (w *world) newArena(t *testing.T) *arena {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(200 * time.Millisecond)

	return &arena{T: t, Gomega: g, world: w, ctx: t.Context(), name: fmt.Sprintf("x%d", w.number.Add(1))}
}

// never declares an effect of success. It is checked at the end of the attempt, and again at the end
// of all attempts.
func (a *arena) never(what string, happened func(context.Context) bool) {
	e := effect{a.Name(), what, happened}
	a.effects = append(a.effects, e)

	a.mu.Lock()
	defer a.mu.Unlock()

	a.world.effects = append(a.world.effects, e)
}

func (a *arena) expectNoEffect() {
	for _, e := range a.effects {
		if e.happened(a.ctx) {
			a.Errorf("the attacker succeeds: %s", e.what)
		}
	}
}

// expectNothingLater checks all effects again, and what no attempt may change.
func (w *world) expectNothingLater(t *testing.T) {
	w.atEnd = sync.OnceValue(func() string { return w.readable(t.Context(), NewWithT(t)) })

	for _, e := range w.effects {
		if e.happened(t.Context()) {
			t.Errorf("%s: the attacker has succeeded meanwhile: %s", e.tried, e.what)
		}
	}

	w.expectVictimUnchanged(t)
	w.expectNoAdmin(t)

	log, err := os.ReadFile(w.log)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	if _, first, panicked := bytes.Cut(log, []byte(`"Observed a panic"`)); panicked {
		t.Errorf("the operator has panicked, for the first time here: %.4000s", first)
	}
}

// create creates objects as the tenant's user, who may do so.
func (a *arena) create(objects ...client.Object) {
	a.Helper()

	for _, o := range objects {
		a.Expect(a.tenant.Create(a.ctx, o)).To(Succeed(), "%T %s", o, o.GetName())
	}
}

// outcome waits for the operator's answer to the current generation of a provider and returns its
// reason and message.
func (a *arena) outcome(p v1alpha2.Provider) string {
	a.Helper()

	a.Eventually(func(g Gomega) {
		g.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		answer := conditions.Get(p, v1alpha2.ReadyCondition)
		g.Expect(answer).NotTo(BeNil())
		g.Expect(answer.ObservedGeneration).To(Equal(p.GetGeneration()))
		g.Expect(answer.Reason).NotTo(Equal(v1alpha2.ProgressingReason), answer.Message)
	}).Should(Succeed(), "the operator does not answer")

	return readyReason(p)
}

// changed changes a provider as the tenant's user and returns the operator's answer.
func (a *arena) changed(p v1alpha2.Provider) string {
	a.Helper()
	a.Expect(bedtest.Edit(a.ctx, a.tenant, p, func(p v1alpha2.Provider) {
		p.GetSpec().Variables = map[string]string{"CHANGED": "yes"}
		p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
	})).To(Succeed())

	return a.outcome(p)
}

// readyReason returns the reason and the message of a provider's condition Ready.
func readyReason(p v1alpha2.Provider) string {
	ready := conditions.Get(p, v1alpha2.ReadyCondition)
	if ready == nil {
		return ""
	}

	return ready.Reason + ": " + ready.Message
}

// attempted creates objects and a provider as the tenant's user and returns the operator's answer. What
// an admission policy of the chart refuses is created by an administrator, as without the policy.
func (a *arena) attempted(p v1alpha2.Provider, objects ...client.Object) string {
	a.Helper()

	before := ""

	for _, o := range append(objects, p) {
		err := a.tenant.Create(a.ctx, o)
		if err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			before = "by a policy; and without it: "
			err = a.admin.Create(a.ctx, o)
		}

		a.Expect(err).NotTo(HaveOccurred(), "%T %s", o, o.GetName())
	}

	return before + a.outcome(p)
}

// jewel returns something that only the victim may know, which it puts into a Secret and a
// ConfigMap of the victim.
func (a *arena) jewel(keys ...string) string {
	a.Helper()

	jewel := "crown-jewel-of-" + a.name + "-end"
	secret := &corev1.Secret{ObjectMeta: named(victim, a.name), StringData: map[string]string{}}
	config := &corev1.ConfigMap{ObjectMeta: named(victim, a.name), Data: map[string]string{}}

	for _, key := range append(keys, "value") {
		secret.StringData[key], config.Data[key] = jewel, jewel
	}

	config.Data[v1alpha2.ConfigMapManifestsKey] = note("stolen-"+a.name, "", jewel)
	a.Expect(a.admin.Create(a.ctx, secret)).To(Succeed())
	a.Expect(a.admin.Create(a.ctx, config)).To(Succeed())
	a.neverKnown(jewel)

	return jewel
}

// neverKnown declares that a text must not be in anything that the tenant can read.
func (a *arena) neverKnown(text string) {
	a.never(fmt.Sprintf("%q is in an object that the tenant can read", text), func(ctx context.Context) bool {
		return strings.Contains(a.readableByTenant(ctx), text)
	})
}

// readableByTenant returns everything that the tenant's user can read. After all attempts, it is read once.
func (a *arena) readableByTenant(ctx context.Context) string {
	a.Helper()

	if a.atEnd != nil {
		return a.atEnd()
	}

	return a.readable(ctx, a)
}

// readable returns everything that the tenant's user can read, with the records of Helm unpacked.
func (w *world) readable(ctx context.Context, g Gomega) string {
	var all strings.Builder

	lists := []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.EventList{}}
	for _, t := range v1alpha2.ProviderTypes() {
		lists = append(lists, t.NewList())
	}

	for _, list := range lists {
		g.Expect(w.admin.List(ctx, list)).To(Succeed())
		items, err := meta.ExtractList(list)
		g.Expect(err).NotTo(HaveOccurred())

		for _, item := range items {
			if o := item.(client.Object); isTenants(o.GetNamespace()) {
				all.WriteString(textOf(g, o))
			}
		}
	}

	return all.String()
}

// textOf returns an object as text, with the record of Helm unpacked.
func textOf(g Gomega, o client.Object) string {
	text, err := json.Marshal(o)
	g.Expect(err).NotTo(HaveOccurred())

	if secret, ok := o.(*corev1.Secret); ok {
		for _, value := range secret.Data {
			text = append(text, unpacked(value)...)
		}
	}

	return string(text)
}

// unpacked returns a value of a Secret as text, and without the encoding of Helm's records.
func unpacked(value []byte) string {
	const most = 4 << 20

	decoded, err := base64.StdEncoding.AppendDecode(nil, value)
	if err != nil {
		return string(value)
	}

	reader, err := gzip.NewReader(bytes.NewReader(decoded))
	if err != nil {
		return string(value) + string(decoded)
	}

	text, _ := io.ReadAll(io.LimitReader(reader, most))

	return string(text)
}

// neverExists declares that an object must not come into being.
func (a *arena) neverExists(o client.Object) {
	a.never(fmt.Sprintf("%T %s/%s exists", o, o.GetNamespace(), o.GetName()), func(ctx context.Context) bool {
		found := o.DeepCopyObject().(client.Object)

		err := a.admin.Get(ctx, client.ObjectKeyFromObject(o), found)
		a.Expect(client.IgnoreNotFound(err)).To(Succeed())

		return err == nil
	})
}

// expectNoAdmin checks that the tenant did not get permissions in other namespaces.
func (w *world) expectNoAdmin(t *testing.T) {
	for _, user := range []string{tenantUser, accountUser("limited"), accountUser("installer")} {
		everything := authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"}
		if w.allows(t, user, everything) {
			t.Errorf("%s may do everything", user)
		}
	}
}

// allows reports whether the API server allows something to a user.
func (w *world) allows(t *testing.T, user string, what authorizationv1.ResourceAttributes) bool {
	review := &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &what},
	}
	NewWithT(t).Expect(w.admin.Create(t.Context(), review)).To(Succeed())

	return review.Status.Allowed
}

// neverForged declares that forgedLines must not be lines of their own, in the log or in conditions.
func (a *arena) neverForged() {
	a.never("the operator's log or a condition has a forged line", func(ctx context.Context) bool {
		log, err := os.ReadFile(a.log)
		a.Expect(err).NotTo(HaveOccurred())

		forged := "\n{\"level\":\"info\",\"msg\":\"forged-" + a.name
		readable := a.readableByTenant(ctx)

		return bytes.Contains(log, []byte(forged)) || bytes.ContainsRune(log, '\x1b') ||
			strings.Contains(readable, `\u001b[2J`) || strings.Contains(readable, quoted(forged))
	})
}

// quoted returns a text as it is within a string of JSON.
func quoted(text string) string { return strings.Trim(strconv.Quote(text), `"`) }

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
