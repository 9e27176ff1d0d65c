package capi

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"

	"github.com/Masterminds/semver/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed/node"
	"github.com/capstan-project/capstan/test/capi/managers"
	"github.com/capstan-project/capstan/test/harness"
)

// exact requests a version itself.
func exact(version string) string { return version }

// inRange requests the newest patch release of a version's minor version.
func inRange(version string) string {
	v := semver.MustParse(version)
	return fmt.Sprintf("~%d.%d", v.Major(), v.Minor())
}

// settle waits until all managers run in as many pods as they should.
func settle(ctx context.Context) {
	GinkgoHelper()

	for _, label := range managers.Labels {
		Eventually(func(g Gomega) { available(ctx, g, namespaceOf(label)) }).Should(Succeed())
	}
}

// killed kills the processes of a pod, and waits until they have been started again.
func killed(ctx context.Context, namespace, name string) {
	GinkgoHelper()

	restarts := func() int32 {
		pod := &corev1.Pod{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)).To(Succeed())

		return pod.Status.ContainerStatuses[0].RestartCount
	}

	before := restarts()

	processes, err := node.Processes(name)
	Expect(err).NotTo(HaveOccurred())
	Expect(node.Kill(processes)).To(Succeed())
	Eventually(restarts).Should(BeNumerically(">", before))
	Eventually(func(g Gomega) { available(ctx, g, namespace) }).Should(Succeed())
}

// drained drains a node, as before its maintenance.
func drained(ctx context.Context, node string) {
	GinkgoHelper()
	run(ctx, "kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m")
}

// restarted replaces all pods of the managers with kubectl.
func restarted(ctx context.Context) {
	GinkgoHelper()

	for _, label := range managers.Labels {
		run(ctx, "kubectl", "rollout", "restart", "deployments", "-n", namespaceOf(label))
	}

	settle(ctx)
}

// changed patches the managers' Deployments, and waits until their pods have been replaced.
func changed(ctx context.Context, patch string) {
	GinkgoHelper()

	for _, label := range managers.Labels {
		for _, d := range deployments(ctx, Default, namespaceOf(label)) {
			run(ctx, "kubectl", "patch", "deployment", d.Name, "-n", d.Namespace, "--patch", patch)
		}
	}

	settle(ctx)
}

// mismatchedSecret contains the certificate of one webhook and the key of another one.
const mismatchedSecret = "mismatched"

// mismatched creates mismatchedSecret next to the Secret of the certificate.
func mismatched(ctx context.Context, certificate, key client.ObjectKey) {
	GinkgoHelper()

	pair := &corev1.Secret{Data: map[string][]byte{}}
	pair.Namespace, pair.Name = certificate.Namespace, mismatchedSecret

	for name, from := range map[string]client.ObjectKey{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key} {
		secret := &corev1.Secret{}
		Expect(admin.Get(ctx, from, secret)).To(Succeed())
		pair.Data[name] = secret.Data[name]
	}

	Expect(admin.Create(ctx, pair)).To(Succeed())
}

// broken makes a newer patch release of a provider available, in which something is changed.
func broken(
	ctx context.Context,
	last managers.Step,
	label string,
	change func(components []byte) []byte,
) *harness.Release {
	GinkgoHelper()

	release := load(ctx, label, last[label])
	changed := change(release.Bundle.Components)
	Expect(changed).NotTo(Equal(release.Bundle.Components))

	release.Bundle.Components = changed
	v := semver.MustParse(release.Bundle.Version)
	release.Bundle.Version = fmt.Sprintf("v%d.%d.%d", v.Major(), v.Minor(), v.Patch()+900)
	Expect(release.Prepare(ctx, admin)).To(Succeed())

	return release
}

// fails requests a release, and expects that it is rolled back. It remains requested.
func fails(ctx context.Context, release *harness.Release) {
	GinkgoHelper()

	p := release.Resource()
	change := func(patch string) {
		GinkgoHelper()
		Expect(admin.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	}

	change(fmt.Sprintf(`{"spec":{"version":%q,"release":{"timeout":"45s","retries":0}}}`, release.Bundle.Version))
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		g.Expect(conditions.IsStalled(p)).To(BeTrue(), conditions.GetMessage(p, v1alpha2.ReadyCondition))
	}).Should(Succeed())

	message := conditions.GetMessage(p, v1alpha2.ReadyCondition)
	GinkgoWriter.Println(message)
	Expect(message).To(ContainSubstring(release.Bundle.Version))
	settle(ctx)
	change(`{"spec":{"release":null}}`)
}

// settledDowngrade expects that each provider has its previous version, or keeps its last one because the CRDs do not
// allow the downgrade. It returns the versions.
func settledDowngrade(ctx context.Context, g Gomega, previous, last managers.Step) managers.Step {
	now := managers.Step{}

	for _, label := range managers.Labels {
		p := provider(label)
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		g.Expect(p.GetStatus().ObservedGeneration).To(Equal(p.GetGeneration()), label)

		if now[label] = *p.GetStatus().InstalledVersion; now[label] == previous[label] {
			g.Expect(conditions.IsReady(p)).To(BeTrue(), label)
			continue
		}

		g.Expect(now[label]).To(Equal(last[label]))
		g.Expect(conditions.GetMessage(p, v1alpha2.ReadyCondition)).To(
			ContainSubstring("which is never downgraded"), label)
	}

	return now
}

// renewed deletes a Secret with a certificate, and waits until cert-manager has created another one, which it returns.
func renewed(ctx context.Context, key client.ObjectKey) []byte {
	GinkgoHelper()

	before := &corev1.Secret{}
	Expect(admin.Get(ctx, key, before)).To(Succeed())
	Expect(admin.Delete(ctx, before)).To(Succeed())

	now := &corev1.Secret{}

	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, key, now)).To(Succeed())
		g.Expect(now.Data[corev1.TLSCertKey]).NotTo(Or(BeEmpty(), Equal(before.Data[corev1.TLSCertKey])))
	}).Should(Succeed())

	block, _ := pem.Decode(now.Data[corev1.TLSCertKey])
	Expect(block).NotTo(BeNil())

	return block.Bytes
}

// served returns the certificate with which a Service answers.
func served(ctx context.Context, g Gomega, key client.ObjectKey) []byte {
	service := &corev1.Service{}
	g.Expect(admin.Get(ctx, key, service)).To(Succeed())

	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // only the certificate is read
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(service.Spec.ClusterIP, "443"))
	g.Expect(err).NotTo(HaveOccurred())

	defer connection.Close()

	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
}
