package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/faults"
)

// action is something that the operator does with a release.
type action struct {
	name string
	// installed are the versions that are installed before, one after the other.
	installed []string
	// begin makes the operator begin.
	begin func(context.Context, v1alpha2.Provider)
	// method and image are those of its request for the manager's Deployment in the middle of it.
	method, image string
}

// The operator runs behind a proxy that holds a request of it while a user runs helm.
var _ = Describe("A helm command in the middle of an action of the operator", Ordered, ContinueOnFailure, func() {
	var (
		w     *world
		proxy *faults.Faults
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		proxy = faults.New(0)
		w.restartBehind(proxy, func() {})
	})

	manager := func(p v1alpha2.Provider) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: named(p.GetNamespace(), p.GetName()+"-controller-manager")}
	}
	create := func(ctx context.Context, p v1alpha2.Provider) { Expect(w.client.Create(ctx, p)).To(Succeed()) }
	changeTo := func(version string) func(context.Context, v1alpha2.Provider) {
		return func(ctx context.Context, p v1alpha2.Provider) {
			update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = version })
		}
	}
	deleteManager := func(ctx context.Context, p v1alpha2.Provider) {
		Expect(w.client.Delete(ctx, manager(p))).To(Succeed())
	}
	remove := func(ctx context.Context, p v1alpha2.Provider) { Expect(w.client.Delete(ctx, p)).To(Succeed()) }

	both := []string{"v1.0.0", "v1.1.0"}
	installation := action{name: "install", begin: create, method: http.MethodPatch}
	upgrade := action{"upgrade", both[:1], changeTo("v1.1.0"), http.MethodPatch, ":v1.1.0"}
	rollback := action{"rollback", both[:1], changeTo("v1.2.0"), http.MethodPatch, ":v1.0.0"}
	correction := action{"correction", both, deleteManager, http.MethodPatch, ""}
	removal := action{"removal", both, remove, http.MethodDelete, ""}

	// prepare offers three versions of a provider, the last of which never runs, and installs those that an action needs.
	prepare := func(ctx context.Context, name string, a action) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		first := newTiny(name, "v1.0.0")
		for _, t := range []tiny{first, newTiny(name, "v1.1.0"), neverRunning(newTiny(name, "v1.2.0"))} {
			w.offer(ctx, t)
		}

		p := first.resource()
		p.Spec.Release = &v1alpha2.ReleaseSpec{
			Timeout: &metav1.Duration{Duration: 3 * time.Second}, Retries: ptr.To(int32(0)),
		}

		for i, version := range a.installed {
			if i == 0 {
				create(ctx, p)
			}

			changeTo(version)(ctx, p)
			Eventually(w.read(ctx, p)).Should(beReady(version))
		}

		return p
	}
	// hold holds the request in the middle of an action, until proceed is called. sent is closed when there is one.
	hold := func(p v1alpha2.Provider, a action) (sent chan struct{}, proceed func()) {
		sent, held := make(chan struct{}), make(chan struct{})
		arrived := sync.OnceFunc(func() { close(sent) })
		proceed = sync.OnceFunc(func() { proxy.Break(nil); close(held) })

		DeferCleanup(proceed)
		proxy.Break(func(r *http.Request) bool {
			if r.Method == a.method && strings.Contains(r.URL.Path, "/namespaces/"+p.GetNamespace()+"/deployments") &&
				!r.URL.Query().Has("dryRun") && strings.Contains(bodyOf(r), a.image) {
				arrived()
				<-held
			}

			return false
		})

		return sent, proceed
	}
	// during begins an action, and runs a helm command for the release in the middle of it.
	during := func(ctx context.Context, a action, command string, args ...string) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		p := prepare(ctx, command+"-in-"+a.name, a)
		sent, proceed := hold(p, a)
		a.begin(ctx, p)
		Eventually(sent).Should(BeClosed())
		w.run(ctx, "helm", slices.Concat([]string{command, v1alpha2.ReleaseName(p), "-n", p.Namespace}, args)...)
		proceed()

		return p
	}
	expectNothingLeft := func(ctx context.Context, g Gomega, p v1alpha2.Provider) {
		GinkgoHelper()
		g.Expect(gone(ctx, w, manager(p))()).To(BeTrue(), "the manager's Deployment is left")
		g.Expect(w.helm(ctx, "helm", "list", "-n", p.GetNamespace(), "--all")).To(BeEmpty())
	}

	DescribeTable("that uninstalls is held",
		func(ctx SpecContext, a action) {
			p := during(ctx, a, "uninstall")
			uninstalled := func(g Gomega) {
				g.Expect(w.read(ctx, p)(g)).To(notBeReady(v1alpha2.ExternalChangeReason, "another program uninstalled release"))
				expectNothingLeft(ctx, g, p)
			}

			Eventually(uninstalled).WithPolling(helmInterval).Should(Succeed())
			Consistently(uninstalled).WithPolling(helmInterval).WithTimeout(2 * quietPeriod).Should(Succeed())
		},
		Entry("during an installation", installation),
		Entry("during an upgrade", upgrade),
		Entry("during a rollback", rollback),
		Entry("during a correction", correction),
	)

	// The objects may be those of either, so what the resource asks for is applied.
	DescribeTable("that rolls back is followed by another revision",
		func(ctx SpecContext, a action, ended OmegaMatcher, version string) {
			p := during(ctx, a, "rollback", "1")
			Eventually(w.read(ctx, p)).Should(ended)

			d := manager(p)
			Expect(w.client.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			Expect(d.Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":" + version))

			history := w.helm(ctx, "helm", "history", v1alpha2.ReleaseName(p), "-n", p.Namespace)
			Expect(history[:len(history)-1]).To(HaveEach(HaveField("Status", BeElementOf("superseded", "failed"))))
			Expect(history[len(history)-1]).To(And(HaveField("Status", "deployed"), HaveField("AppVersion", version)))
		},
		Entry("during an installation", installation, beReady("v1.0.0"), "v1.0.0"),
		Entry("during an upgrade", upgrade, beReady("v1.1.0"), "v1.1.0"),
		Entry("during a rollback", rollback,
			beStalled(v1alpha2.TimedOutWaitingForDeploymentReason, "v1.0.0 runs; v1.2.0 failed"), "v1.0.0"),
	)

	DescribeTable("does not keep a removal from removing everything",
		func(ctx SpecContext, command string, args ...string) {
			p := during(ctx, removal, command, args...)

			Eventually(gone(ctx, w, p)).Should(BeTrue())
			expectNothingLeft(ctx, Default, p)
		},
		Entry("helm uninstall", "uninstall"),
		Entry("helm rollback", "rollback", "1"),
	)
})
