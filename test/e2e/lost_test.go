package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/faults"
)

// memoryWrite matches the path of a write to what the operator remembers, with its namespace: a status, or a record of
// Helm.
var memoryWrite = regexp.MustCompile(`/namespaces/([^/]+)/` +
	`(infrastructureproviders/[^/]+/status|secrets(/sh\.helm\.[^/]+)?)$`)

// lostWrite is a write to what the operator remembers of one provider that never takes effect.
type lostWrite struct {
	number int // of the write, from 1
	// killed is set if no request for the provider succeeds from then on, as if the operator was killed, instead of this
	// write being refused.
	killed bool

	seen map[[sha256.Size]byte]int // numbers of writes, by their content: a repetition is the same write
	lost bool
}

// losses are writes that are lost, by namespace.
type losses struct {
	mu     sync.Mutex
	writes map[string]*lostWrite
}

// matches reports whether a request fails.
func (l *losses) matches(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	for namespace, w := range l.writes {
		if w.lost && w.killed && strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/") {
			return true
		}
	}

	match := memoryWrite.FindStringSubmatch(r.URL.Path)
	if match == nil || r.Method == http.MethodGet || l.writes[match[1]] == nil {
		return false
	}

	w := l.writes[match[1]]
	id := sha256.Sum256([]byte(r.Method + r.URL.Path + bodyOf(r)))

	if w.seen[id] == 0 {
		w.seen[id] = len(w.seen) + 1
	}

	w.lost = w.lost || w.seen[id] == w.number

	return w.seen[id] == w.number
}

// lose loses the first write of the first provider, the second one of the second, and so on.
func (l *losses) lose(providers []v1alpha2.Provider, killed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.writes = map[string]*lostWrite{}
	for i, p := range providers {
		l.writes[p.GetNamespace()] = &lostWrite{number: i + 1, killed: killed, seen: map[[sha256.Size]byte]int{}}
	}
}

func (l *losses) isLost(p v1alpha2.Provider) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.writes[p.GetNamespace()].lost
}

func (l *losses) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.writes = nil
}

// lossyAction is something that writes what the operator remembers.
type lossyAction struct {
	name string
	// writes is how many of its writes are lost, each for a provider of its own.
	writes int
	// upgraded is v1.1.0 of the provider, v1.0.0 of which is installed before; nil if nothing is.
	upgraded func(tiny) tiny
	begin    func(context.Context, *world, v1alpha2.Provider)
	// ended matches the provider in the end; nil if it is gone then.
	ended types.GomegaMatcher
}

var lossyActions = []lossyAction{
	{
		name: "installation", writes: 6, ended: beReady("v1.0.0"),
		begin: func(ctx context.Context, w *world, p v1alpha2.Provider) {
			Expect(w.client.Create(ctx, p)).To(Succeed())
		},
	},
	{name: "upgrade", writes: 7, upgraded: healthy, begin: toSecondVersion, ended: beReady("v1.1.0")},
	{
		name: "failure", writes: 13, upgraded: failing, begin: toSecondVersion,
		ended: beStalled(v1alpha2.UnhealthyReason, "v1.0.0 runs; v1.1.0 failed", "given up"),
	},
	{
		name: "removal", writes: 3, upgraded: healthy,
		begin: func(ctx context.Context, w *world, p v1alpha2.Provider) {
			Expect(w.client.Delete(ctx, p)).To(Succeed())
		},
	},
}

func healthy(t tiny) tiny { return t }

func toSecondVersion(ctx context.Context, w *world, p v1alpha2.Provider) {
	GinkgoHelper()
	update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
}

var _ = Describe("A write of what the operator remembers", Ordered, ContinueOnFailure, func() {
	var (
		w     *world
		lost  = &losses{}
		start func()
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)

		faulty := faults.New(uint64(GinkgoRandomSeed()))
		faulty.Break(lost.matches)
		start = w.restartBehind(faulty, func() {})
	})

	// prepare creates a provider for each write that is lost, and installs it if the action is about what is installed.
	prepare := func(ctx SpecContext, a lossyAction, how string) []v1alpha2.Provider {
		GinkgoHelper()

		all := make([]v1alpha2.Provider, 0, a.writes)

		for number := range a.writes {
			t := newTiny(fmt.Sprintf("lost-%s-%s-%d", a.name, how, number+1), "v1.0.0")
			p := t.resource()
			p.Spec.Release = &v1alpha2.ReleaseSpec{Retries: ptr.To(int32(0))}
			all = append(all, p)

			Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
			Expect(w.client.Create(ctx, t.configMap())).To(Succeed())

			if a.upgraded != nil {
				Expect(w.client.Create(ctx, a.upgraded(newTiny(t.name, "v1.1.0")).configMap())).To(Succeed())
				Expect(w.client.Create(ctx, p)).To(Succeed())
			}
		}

		for _, p := range all {
			if a.upgraded != nil {
				Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			}
		}

		return all
	}

	for _, a := range lossyActions {
		for _, killed := range []bool{false, true} {
			how := map[bool]string{false: "refused", true: "killed"}[killed]

			It(fmt.Sprintf("may be lost in every %s (%s)", a.name, how), func(ctx SpecContext) {
				all := prepare(ctx, a, how)
				lost.lose(all, killed)
				DeferCleanup(lost.forget)

				for _, p := range all {
					a.begin(ctx, w, p)
				}

				ended := func(p v1alpha2.Provider) bool { return hasEnded(ctx, w, p, a.ended) }

				for i, p := range all {
					Eventually(func() bool { return lost.isLost(p) || ended(p) }).Should(BeTrue(), p.GetName())
					Expect(i > 1 || lost.isLost(p)).To(BeTrue(), "the action has two writes at least")
					AddReportEntry(fmt.Sprintf("after write %d, lost: %t", i+1, lost.isLost(p)), readyMessage(ctx, w, p))
				}

				if killed {
					Expect(w.operator.Kill()).To(Succeed())
				}

				lost.forget()

				if killed {
					start()
				}

				for _, p := range all {
					Eventually(func() bool { return ended(p) }).Should(BeTrue(), p.GetName())
					expectSettled(ctx, w, p, a.ended != nil)
				}
			})
		}
	}
})

// hasEnded reports whether a provider is as it should be in the end, where nil means that it is gone.
func hasEnded(ctx context.Context, w *world, p v1alpha2.Provider, want types.GomegaMatcher) bool {
	GinkgoHelper()

	if err := w.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return want == nil
	}

	if want == nil {
		return false
	}

	matches, err := want.Match(p)
	Expect(err).NotTo(HaveOccurred())

	return matches
}

// readyMessage returns what a provider says of itself.
func readyMessage(ctx context.Context, w *world, p v1alpha2.Provider) string {
	GinkgoHelper()

	if err := w.client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return "gone"
	}

	ready := v1alpha2.FindCondition(p.GetConditions(), v1alpha2.ReadyCondition)

	return fmt.Sprintf("Ready=%s %s: %s", ready.Status, ready.Reason, ready.Message)
}

// expectSettled expects that Helm's records of a provider say how its actions have ended, or that nothing of it is
// left.
func expectSettled(ctx context.Context, w *world, p v1alpha2.Provider, exists bool) {
	GinkgoHelper()

	if !exists {
		for _, list := range []client.ObjectList{&corev1.SecretList{}, &appsv1.DeploymentList{}} {
			Expect(w.client.List(ctx, list, client.InNamespace(p.GetNamespace()))).To(Succeed())
			Expect(meta.LenList(list)).To(BeZero(), p.GetName())
		}

		return
	}

	history := w.helm(ctx, "helm", "history", v1alpha2.ReleaseName(p), "-n", p.GetNamespace())
	Expect(history).NotTo(BeEmpty(), p.GetName())

	for i, revision := range history {
		want := BeElementOf("failed", "superseded")
		if i == len(history)-1 {
			want = Equal("deployed")
		}

		Expect(revision.Status).To(want, "%s: %v", p.GetName(), history)
	}
}
