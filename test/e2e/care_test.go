package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// installation is a provider that is installed and healthy at v1.0.0.
type installation struct {
	*world
	provider   v1alpha2.Provider
	deployment client.ObjectKey // of its manager
	tiny       tiny
}

// update changes the provider's spec.
func (i *installation) update(ctx context.Context, change func(*v1alpha2.ProviderSpec)) {
	GinkgoHelper()
	update(ctx, i.world, i.provider, func(p v1alpha2.Provider) { change(p.GetSpec()) })
}

// blocker is something that keeps a provider's next revision from being applied.
type blocker struct {
	description string
	// name of the tiny provider.
	name string
	// prepare changes the provider, or what it needs, before it is installed.
	prepare func(context.Context, *installation, *v1alpha2.InfrastructureProvider)
	// block puts the blocker in place, and unblock removes it.
	block, unblock func(context.Context, *installation)
	// reason and message are those of the condition Ready while the blocker is in place.
	reason, message string
	// input is set if the blocker takes away something that is not needed for what is installed: the
	// provider stays ready while its spec has not changed, and InputsUnavailable has reason and message.
	input bool
}

// blockers are one of each kind: what is asked for cannot be planned, an input is gone, and a check fails. That others
// of a kind end the change in the same way, and none of them care, is what the tables of errors and of verdicts show.
func blockers() []blocker {
	return []blocker{
		{
			description: "the version does not exist",
			name:        "care-version",
			block:       requestVersion("v9.9.9"),
			unblock:     requestVersion("v1.0.0"),
			reason:      v1alpha2.VersionNotFoundReason,
			message:     "v9.9.9",
		},
		{
			description: "the variables' Secret is missing",
			name:        "care-secret",
			prepare: func(ctx context.Context, i *installation, p *v1alpha2.InfrastructureProvider) {
				p.Spec.SecretName = "credentials"

				createCredentials(ctx, i)
			},
			block: func(ctx context.Context, i *installation) {
				Expect(i.client.Delete(ctx, credentials(i.tiny.name))).To(Succeed())
				requestReconcile(ctx, i)
			},
			unblock: createCredentials,
			reason:  v1alpha2.SecretNotFoundReason,
			message: "Secret care-secret/credentials",
			input:   true,
		},
		{
			description: "a CRD change is unsafe",
			name:        "care-crd",
			prepare:     func(ctx context.Context, i *installation, _ *v1alpha2.InfrastructureProvider) { i.offerUnsafe(ctx) },
			block: func(ctx context.Context, i *installation) {
				object := i.tiny.object("v1", "victim")

				Eventually(func() error {
					return client.IgnoreAlreadyExists(i.client.Create(ctx, object))
				}).Should(Succeed())
				requestVersion("v1.1.0")(ctx, i)
			},
			unblock: requestVersion("v1.0.0"),
			reason:  v1alpha2.UnsafeCRDsReason,
			message: "default/victim",
		},
	}
}

var _ = Describe("Care for what is installed while a change is blocked", Ordered, ContinueOnFailure, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) { w = sharedWorld(ctx) })

	// install installs the provider that the blocker is for.
	install := func(ctx context.Context, b blocker) *installation {
		GinkgoHelper()

		t := newTiny(b.name, "v1.0.0")
		p := t.resource()
		i := &installation{
			world:      w,
			provider:   p,
			deployment: client.ObjectKey{Namespace: t.name, Name: t.name + "-controller-manager"},
			tiny:       t,
		}

		Expect(client.IgnoreAlreadyExists(w.client.Create(ctx, t.namespace()))).To(Succeed())

		if b.prepare != nil {
			b.prepare(ctx, i, p)
		}

		Expect(w.client.Create(ctx, i.tiny.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		return i
	}

	for _, b := range blockers() {
		var i *installation

		It("corrects drift while "+b.description, func(ctx SpecContext) {
			i = install(ctx, b)

			b.block(ctx, i)
			DeferCleanup(func(ctx SpecContext) {
				b.unblock(ctx, i)
				Eventually(w.read(ctx, i.provider)).Should(beReady("v1.0.0"))
			})

			Eventually(w.read(ctx, i.provider)).Should(b.beReported())

			By("deleting the manager's Deployment")

			deleted := i.manager(ctx)(Default)
			Expect(w.client.Delete(ctx, deleted)).To(Succeed())
			Eventually(i.manager(ctx)).WithTimeout(soon).Should(
				HaveField("UID", Not(Equal(deleted.UID))), "the Deployment is created again")
			Eventually(i.manager(ctx)).Should(HaveField("Status.AvailableReplicas", BeEquivalentTo(1)))

			// What was reported before the deletion is reported still, until the operator has noticed it.
			request := requestReconcile(ctx, i)
			Eventually(w.read(ctx, i.provider)).Should(
				And(HaveField("Status.LastHandledReconcileAt", request), b.beReported()))
			Consistently(w.read(ctx, i.provider)).WithTimeout(quietPeriod).Should(b.beReported())
		})

		It("rolls back a revision that is not healthy in time while "+b.description, func(ctx SpecContext) {
			Expect(i).NotTo(BeNil(), "the provider was not installed")
			Eventually(w.read(ctx, i.provider)).Should(beReady("v1.0.0"))

			healthy := i.provider.GetStatus().Release.Revision

			i.update(ctx, neverHealthy)
			Eventually(w.read(ctx, i.provider)).Should(i.haveRevision(healthy + 1))

			b.block(ctx, i)
			DeferCleanup(func(ctx SpecContext) {
				i.update(ctx, func(spec *v1alpha2.ProviderSpec) { spec.Deployment, spec.Release = nil, nil })
				b.unblock(ctx, i)
				Eventually(w.read(ctx, i.provider)).Should(beReady("v1.0.0"))
			})

			Eventually(func() []helmRelease {
				history := w.helm(ctx, "helm", "history", v1alpha2.Label(i.provider), "-n", i.provider.GetNamespace())
				return history[max(0, len(history)-2):]
			}).WithPolling(helmInterval).Should(HaveExactElements(
				HaveField("Status", "failed"),
				And(HaveField("Status", "deployed"), HaveField("Description", HavePrefix("Rollback to "))),
			))
			Expect(i.manager(ctx)(Default).Spec.Template.Spec.NodeSelector).NotTo(HaveKey("no"))

			if !b.input {
				Eventually(w.read(ctx, i.provider)).Should(b.beReported())
				return
			}

			// The provider is not in sync with its spec now: either the blocker is reported or why the
			// revision failed.
			Eventually(w.read(ctx, i.provider)).Should(notBeReadyAt("v1.0.0"))
		})
	}
})

// beReported matches a provider whose condition Ready says what runs, and why it is not what the
// resource asks for, if that is not installed already.
func (b blocker) beReported() OmegaMatcher {
	if b.input {
		return And(beReady("v1.0.0"),
			haveCondition(v1alpha2.InputsUnavailableCondition, metav1.ConditionTrue, b.reason, b.message))
	}

	return notBeReady(b.reason, "v1.0.0", b.message)
}

// manager reads the Deployment of the provider's manager.
func (i *installation) manager(ctx context.Context) func(Gomega) *appsv1.Deployment {
	return func(g Gomega) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		g.Expect(i.client.Get(ctx, i.deployment, d)).To(Succeed())

		return d
	}
}

// neverHealthy asks for a revision whose pods cannot be scheduled. It differs each time: what has failed
// once is not attempted again.
func neverHealthy(spec *v1alpha2.ProviderSpec) {
	retries := int32(0)
	spec.Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 4 * time.Second}, Retries: &retries}
	spec.Deployment = &v1alpha2.DeploymentSpec{NodeSelector: map[string]string{"no": "node-" + rand.String(5)}}
}

// haveRevision matches a provider with at least that many revisions.
func (i *installation) haveRevision(revision int) OmegaMatcher {
	return WithTransform(
		func(p v1alpha2.Provider) int { return p.GetStatus().Release.Revision },
		BeNumerically(">=", revision),
	)
}

func requestVersion(version string) func(context.Context, *installation) {
	return func(ctx context.Context, i *installation) {
		i.update(ctx, func(spec *v1alpha2.ProviderSpec) { spec.Version = version })
	}
}

// requestReconcile makes the operator read variables and source again, and returns the request. While a
// provider is ready, it does that only on request.
func requestReconcile(ctx context.Context, i *installation) string {
	request := time.Now().String()

	update(ctx, i.world, i.provider, func(p v1alpha2.Provider) {
		p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: request})
	})

	return request
}

func credentials(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"}}
}

func createCredentials(ctx context.Context, i *installation) {
	Expect(i.client.Create(ctx, credentials(i.tiny.name))).To(Succeed())
}

// publish writes the provider's release into a local repository.
func (t tiny) publish(repository string) {
	folder := filepath.Join(repository, "infrastructure-"+t.name, t.version)
	Expect(os.MkdirAll(folder, 0o755)).To(Succeed())

	for name, text := range map[string]string{
		"metadata.yaml":                  t.metadata,
		"infrastructure-components.yaml": t.components,
	} {
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)).To(Succeed())
	}
}

// offerUnsafe offers v1.1.0, whose CRD requires a field that existing objects lack.
func (i *installation) offerUnsafe(ctx context.Context) {
	unsafe := newTiny(i.tiny.name, "v1.1.0")
	unsafe.components = strings.Replace(
		unsafe.components,
		"type: object, x-kubernetes-preserve-unknown-fields: true",
		"type: object, properties: {spec: {type: object, required: [size], "+
			"properties: {name: {type: string}, size: {type: string}}}}",
		1,
	)
	i.offer(ctx, unsafe)
}

// notBeReadyAt matches a provider that is not ready for any reason, and whose message names the version
// that runs.
func notBeReadyAt(version string) OmegaMatcher {
	return WithTransform(
		func(p v1alpha2.Provider) []metav1.Condition { return p.GetConditions() },
		ContainElement(And(
			HaveField("Type", v1alpha2.ReadyCondition),
			HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring(version)),
		)),
	)
}
