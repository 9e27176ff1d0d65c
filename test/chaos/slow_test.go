package chaos

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/faults"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	// A dry run of so many objects, of which 16 are tried at a time, takes longer than a reconcile of another cluster may.
	slowObjects, slowness = 48, 25 * time.Second
	// refusedByWebhook is what an API server answers when a webhook refuses an object, which it did not do in a dry run.
	refusedByWebhook = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden",` +
		`"message":"admission webhook \"late.example.com\" denied the request: too late"}`
)

// slowCluster delays the dry runs of ConfigMaps, and refuses one of v1.1.0.
type slowCluster struct{ http.RoundTripper }

func (s slowCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/configmaps/slow-") {
		return s.RoundTripper.RoundTrip(r)
	}

	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}

	r.Body = io.NopCloser(bytes.NewReader(body))

	switch {
	case r.URL.Query().Has("dryRun"):
		select {
		case <-time.After(slowness):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	case strings.HasSuffix(r.URL.Path, "/slow-7") && bytes.Contains(body, []byte("v1.1.0")):
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(refusedByWebhook)), Request: r,
		}, nil
	}

	return s.RoundTripper.RoundTrip(r)
}

// TestSlowCluster upgrades a provider of another cluster to a version that fails there, where that takes longer than a
// reconcile may: the failure counts, and the provider is rolled back.
func TestSlowCluster(t *testing.T) {
	if os.Getenv("CHAOS_SEED") == "" {
		t.Skip("CHAOS_SEED is not set: a slow cluster takes minutes")
	}

	g := NewWithT(t)
	ctx := t.Context()

	program, err := harness.Program(ctx, root, t.TempDir(), harness.OperatorProgram)
	g.Expect(err).NotTo(HaveOccurred())

	b := bedtest.Start(t, bed.Options{CRDs: harness.OwnCRDs()})
	c, err := harness.PrepareForTest(ctx, b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	config := b.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return slowCluster{next} })

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	proxy, err := faults.New(0).Serve(config, kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(proxy.Close()).To(Succeed()) })

	there, err := os.ReadFile(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())

	key := types.NamespacedName{Namespace: "slow", Name: v1alpha2.CoreProviderName}
	second := slowRelease(key, "v1.1.0")
	g.Expect(second.Prepare(ctx, c)).To(Succeed())

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "there"}, Data: map[string][]byte{"value": there},
	}
	g.Expect(c.Create(ctx, secret)).To(Succeed())

	first := slowRelease(key, "v1.0.0")
	g.Expect(first.Prepare(ctx, c)).To(Succeed())

	p := first.Resource()
	p.GetSpec().Release = &v1alpha2.ReleaseSpec{Retries: ptr.To(int32(0))}
	p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
		LocalSecretReference: v1alpha2.LocalSecretReference{Name: "there"}, Key: "value",
	}}
	g.Expect(c.Create(ctx, p)).To(Succeed())

	operator, err := harness.StartOperator(b, program, filepath.Join(t.TempDir(), "operator.log"))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(operator.Kill()).To(Succeed()) })

	ready := func(g Gomega) metav1.Condition {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		return v1alpha2.FindCondition(p.GetConditions(), v1alpha2.ReadyCondition)
	}

	const wait = 10 * time.Minute

	started := time.Now()

	g.Eventually(ready).WithTimeout(wait).Should(HaveField("Message", "v1.0.0 is healthy"))

	installed := time.Since(started)

	p.GetSpec().Version = "v1.1.0"
	g.Expect(c.Update(ctx, p)).To(Succeed())
	g.Eventually(ready).WithTimeout(wait).Should(And(
		HaveField("Message", And(HavePrefix("v1.0.0 runs; v1.1.0 failed, given up: "), ContainSubstring("late.example.com"))),
		HaveField("Status", metav1.ConditionFalse)))

	var statuses []string
	for _, revision := range p.GetStatus().History {
		statuses = append(statuses, fmt.Sprintf("%s %s", revision.Version, revision.Status))
	}

	g.Expect(statuses).To(Equal([]string{"v1.0.0 deployed", "v1.1.0 failed", "v1.0.0 superseded"}))

	fmt.Printf("slow cluster: installed in %s, failed and rolled back in %s\n",
		installed.Round(time.Second), (time.Since(started) - installed).Round(time.Second))
}

// slowRelease returns a version of core with many objects.
func slowRelease(key types.NamespacedName, version string) *harness.Release {
	release := harness.Small(v1alpha2.CoreProviderType, key, "slow", version)

	for i := range slowObjects {
		release.Bundle.Components = fmt.Appendf(release.Bundle.Components,
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: slow-%d, namespace: slow-system}\ndata: {version: %s}\n",
			i, version)
	}

	return release
}
