package e2e

import (
	"fmt"
	"net"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("A remote cluster that is silent", Ordered, func() {
	var (
		w      *world
		remote []*v1alpha2.InfrastructureProvider
		silent *silentServer
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		silent = newSilentServer()

		Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "silent"}})).To(Succeed())
		Expect(w.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "silent", Name: "there"},
			StringData: map[string]string{"value": fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s"}}]
users: [{name: u, user: {token: hunter2}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, silent.address)},
		})).To(Succeed())

		// There are as many of them as the operator has workers for their kind.
		for i := range 10 {
			p := newTiny(fmt.Sprint("far-", i), "v1.0.0").resource()
			p.Namespace = "silent"
			p.Spec.KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
				LocalSecretReference: v1alpha2.LocalSecretReference{Name: "there"}, Key: "value",
			}}
			Expect(w.client.Create(ctx, p)).To(Succeed())

			remote = append(remote, p)
		}

		Eventually(silent.connections).Should(BeNumerically(">", 0))
	})

	It("holds up no provider elsewhere", func(ctx SpecContext) {
		t := newTiny("near", "v1.0.0")
		p := t.resource()
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).WithTimeout(20 * time.Second).Should(beReady("v1.0.0"))
	})

	It("is distinguished from a silent source, which is named while it is asked", func(ctx SpecContext) {
		t := newTiny("silent-source", "v1.0.0")
		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{HTTP: "http://" + silent.address}

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())

		// The source is waited for longer than that.
		const message = "Getting the provider from its source"
		Eventually(w.read(ctx, p)).WithTimeout(20 * time.Second).Should(And(
			notBeReady(v1alpha2.ProgressingReason, message),
			haveCondition(v1alpha2.ReconcilingCondition, metav1.ConditionTrue, v1alpha2.ProgressingReason, message),
			HaveField("Status.ObservedGeneration", BeEquivalentTo(-1))))
	})

	It("is reported with its address, and asked by one request at a time", func(ctx SpecContext) {
		for _, p := range remote {
			Eventually(w.read(ctx, p)).WithTimeout(2 * time.Minute).Should(And(
				notBeReady(v1alpha2.ClusterUnreachableReason, "https://"+silent.address),
				Not(notBeReady(v1alpha2.ClusterUnreachableReason, "hunter2"))))
		}

		before := silent.connections()

		Consistently(func() int { return silent.connections() - before }).WithTimeout(10 * time.Second).
			Should(BeNumerically("<=", 3))
	})
})

// silentServer accepts connections and says nothing.
type silentServer struct {
	address string

	mu   sync.Mutex
	open []net.Conn
}

func newSilentServer() *silentServer {
	GinkgoHelper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())

	s := &silentServer{address: listener.Addr().String()}

	DeferCleanup(listener.Close)

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			s.mu.Lock()
			s.open = append(s.open, connection)
			s.mu.Unlock()
		}
	}()

	return s
}

// connections returns how many connections were accepted so far.
func (s *silentServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.open)
}
