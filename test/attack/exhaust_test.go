package attack

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// othersWait is how long another tenant's provider may take while the operator works on a hostile
	// input. The goal is two seconds; the machine that runs this test may be loaded.
	othersWait = 10 * time.Second
	// mostMemory is how many MiB the operator may have meanwhile, half of its limit.
	mostMemory = 256
)

// bomb is an input that uses up time or memory.
type bomb struct {
	tried string
	// throw creates what is hostile and returns its providers.
	throw func(*arena) []v1alpha2.Provider
	// lasting says that the operator may be busy with the input for minutes, or accept it. Otherwise it
	// must say within a minute what is wrong with the provider.
	lasting bool
	// most is how many MiB the operator may have afterwards; 0 for mostMemory.
	most int64
	// tolerable says that the operator may also accept the input.
	tolerable bool
}

// exhaust throws the bombs one after the other. The operator, whose memory is limited, must neither
// restart nor keep other providers waiting, and must say on the provider what is wrong with it.
func (w *world) exhaust(t *testing.T) {
	w.sweep(t)

	for _, bomb := range slices.Concat(bombs, growingBombs, recordBombs) {
		t.Run(bomb.tried, func(t *testing.T) {
			w.run(t, attempt{bomb.tried, func(a *arena) string { return a.survive(bomb) }})
		})
	}
}

// sweep removes the tenant's providers, so that the operator is idle.
func (w *world) sweep(t *testing.T) {
	g := NewWithT(t)

	for _, kind := range v1alpha2.ProviderTypes() {
		list := kind.NewList()
		g.Expect(w.admin.List(t.Context(), list)).To(Succeed())

		for _, p := range list.GetItems() {
			if isTenants(p.GetNamespace()) {
				w.abandon(g, p)
			}
		}
	}
}

// isTenants reports whether the tenant's user may read a namespace.
func isTenants(namespace string) bool {
	return namespace == tenant || strings.HasPrefix(namespace, "room-")
}

// abandon deletes a provider without the operator, which may be unable to.
func (w *world) abandon(g Gomega, p v1alpha2.Provider) {
	ctx := context.Background()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null},"spec":{"suspend":true}}`))
	g.Expect(client.IgnoreNotFound(w.admin.Patch(ctx, p, patch))).To(Succeed())
	g.Expect(client.IgnoreNotFound(w.admin.Delete(ctx, p))).To(Succeed())
}

// survive throws a bomb and returns what the operator says, how long others waited, and how much memory it had.
func (a *arena) survive(b bomb) string {
	usual := a.othersAreServed()
	restarts := a.restarts.Load()
	a.operator.Load().ResetPeakMemory()

	thrown := b.throw(a)

	defer a.clean(thrown)

	waited := a.othersAreServed()
	answer := ""

	if !b.lasting {
		answer = a.outcome(thrown[0])
		a.Expect(b.tolerable || !strings.HasPrefix(answer, v1alpha2.HealthyReason)).To(BeTrue(), answer)
	}

	again := a.othersAreServed()

	if b.lasting {
		a.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(thrown[0]), thrown[0])).To(Succeed())
		answer = readyReason(thrown[0])
	}

	a.Expect(a.restarts.Load()).To(Equal(restarts), "the operator had to be restarted")

	memory, peak := a.operator.Load().Memory()>>20, a.operator.Load().PeakMemory()>>20
	a.Expect(peak).To(BeNumerically("<=", mostMemory), "MiB that the operator had")

	if b.most > 0 {
		a.Expect(memory).To(BeNumerically("<=", b.most), "MiB that the operator has")
	}

	return fmt.Sprintf("others waited %.1f s, then %.1f s, usually %.1f s; the operator had up to %d MiB; %s",
		waited.Seconds(), again.Seconds(), usual.Seconds(), peak, answer)
}

// othersAreServed installs a small provider in the victim's namespace and returns how long that took.
func (a *arena) othersAreServed() time.Duration {
	a.Helper()

	s := small{victim, fmt.Sprintf("other-%d", a.number.Add(1)), "v1.0.0", ""}
	a.Expect(a.admin.Create(a.ctx, s.configMap())).To(Succeed())

	p := s.resource()
	begin := time.Now()

	a.Expect(a.admin.Create(a.ctx, p)).To(Succeed())
	a.Eventually(func(g Gomega) string {
		g.Expect(a.admin.Get(a.ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		return readyReason(p)
	}).WithTimeout(othersWait).Should(HavePrefix(v1alpha2.HealthyReason), "others are not served")

	waited := time.Since(begin)

	a.Expect(a.admin.Delete(a.ctx, p)).To(Succeed())

	return waited
}

// clean removes hostile providers and what they read, so that the next bomb is thrown at an idle
// operator.
func (a *arena) clean(thrown []v1alpha2.Provider) {
	a.Expect(a.admin.DeleteAllOf(a.ctx, &corev1.ConfigMap{}, client.InNamespace(tenant),
		client.HasLabels{"provider"})).To(Succeed())

	for _, p := range thrown {
		a.abandon(a, p)
	}
}

// one returns a list of a single provider, after it has created the objects and the provider.
func (a *arena) one(p v1alpha2.Provider, objects ...client.Object) []v1alpha2.Provider {
	for _, o := range append(objects, p) {
		a.Expect(a.admin.Create(a.ctx, o)).To(Succeed(), "%T %s", o, o.GetName())
	}

	return []v1alpha2.Provider{p}
}

// several creates the same provider under several names.
func (a *arena) several(count int, from func(small) (v1alpha2.Provider, []client.Object)) []v1alpha2.Provider {
	var all []v1alpha2.Provider

	for n := range count {
		s := small{tenant, fmt.Sprintf("%s-%d", a.name, n), "v1.0.0", ""}
		p, objects := from(s)
		all = append(all, a.one(p, objects...)...)
	}

	return all
}

// components returns a provider with these components, from a compressed ConfigMap.
func (a *arena) compressed(components string) []v1alpha2.Provider {
	s := a.small("")
	cm := s.compressed()
	cm.BinaryData[v1alpha2.ConfigMapComponentsKey] = compress([]byte(components))

	return a.one(s.by("installer"), cm)
}

// served returns a provider from a hostile web server with TLS.
func (a *arena) served(handler http.Handler) []v1alpha2.Provider {
	trust := a.trust(nil)
	a.create(trust)

	return a.one(a.small("").from(v1alpha2.FetchConfiguration{HTTP: a.server(handler), SecretRef: secretOf(trust)}))
}

// longList is YAML with a list of a size in bytes.
func longList(size int) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nlist:\n" + strings.Repeat("- a\n", size/4)
}

// aliases is YAML of a few lines that expands to 10^9 values.
func aliases() string {
	var text strings.Builder

	text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")

	for n := 1; n < 9; n++ {
		fmt.Fprintf(&text, "a%d: &a%[1]d [%s*a%d]\n", n, strings.Repeat(fmt.Sprintf("*a%d, ", n-1), 9), n-1)
	}

	return text.String()
}

// manyObjects returns components with a number of ConfigMaps.
func manyObjects(s small, count int) string {
	var text strings.Builder

	text.WriteString(s.components())

	for n := range count {
		fmt.Fprintf(&text, "---\n%s", note(fmt.Sprintf("%s-%d", s.name, n), "", "x"))
	}

	return text.String()
}
