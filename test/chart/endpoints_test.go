package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// insecure is an HTTP client that accepts any certificate, as Prometheus does by default.
var insecure = trusting(&tls.Config{InsecureSkipVerify: true})

func trusting(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

// get requests a URL, with a token unless it is empty, and returns the status and the body of the response.
func get(ctx context.Context, by *http.Client, url, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}

	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	response, err := by.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()

	page, err := io.ReadAll(response.Body)

	return response.StatusCode, string(page), err
}

// accountToken creates a ServiceAccount with ClusterRoles, until the container of specs ends, and returns its token.
func accountToken(ctx context.Context, name string, roles ...string) string {
	GinkgoHelper()

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	objects := []client.Object{account}

	for _, role := range roles {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			ObjectMeta: objectName(name + "-" + role),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: name}},
		})
	}

	for _, o := range objects {
		Expect(admin.Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, o)).To(Succeed()) })
	}

	token := &authenticationv1.TokenRequest{}
	Expect(admin.SubResource("token").Create(ctx, account, token)).To(Succeed())

	return token.Status.Token
}

// writeCertificate writes a new certificate and its key to a folder, and returns a client that accepts no other one.
func writeCertificate(folder string) *http.Client {
	GinkgoHelper()

	const host = "capstan-metrics.capstan-system.svc"

	certificate, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{{127, 0, 0, 1}}, nil)
	Expect(err).NotTo(HaveOccurred())

	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		Expect(os.WriteFile(filepath.Join(folder, name), data, 0o600)).To(Succeed())
	}

	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(certificate)).To(BeTrue())

	return trusting(&tls.Config{RootCAs: roots, ServerName: host})
}

var _ = Describe("The ServiceMonitor", func() {
	// endpoint returns what Prometheus is configured to scrape, with values in the arguments.
	endpoint := func(ctx SpecContext, args ...string) map[string]any {
		GinkgoHelper()

		template := []string{"template", release, light, "-n", namespace, "-s", "templates/servicemonitor.yaml",
			"--set", "metrics.serviceMonitor.enabled=true"}

		var monitor struct {
			Spec struct{ Endpoints []map[string]any }
		}

		Expect(yaml.Unmarshal([]byte(run(ctx, "helm", append(template, args...)...)), &monitor)).To(Succeed())
		Expect(monitor.Spec.Endpoints).To(HaveLen(1))

		return monitor.Spec.Endpoints[0]
	}

	It("has Prometheus send its token by HTTPS", func(ctx SpecContext) {
		Expect(endpoint(ctx)).To(And(
			HaveKeyWithValue("scheme", "https"),
			HaveKeyWithValue("bearerTokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
			HaveKeyWithValue("tlsConfig", map[string]any{"insecureSkipVerify": true})))
	})

	It("has Prometheus send no token by HTTP", func(ctx SpecContext) {
		Expect(endpoint(ctx, "--set", "flags.metrics-secure=false")).
			NotTo(Or(HaveKey("scheme"), HaveKey("bearerTokenFile"), HaveKey("tlsConfig")))
	})
})

var _ = Describe("The operator's endpoints", Ordered, func() {
	// status returns the status of a response to a request with a token.
	status := func(ctx context.Context, url, token string) func() (int, error) {
		return func() (int, error) {
			code, _, err := get(ctx, insecure, url, token)
			return code, err
		}
	}

	BeforeAll(func(ctx SpecContext) {
		run(ctx, "helm", "install", release, light, "-n", namespace, "--create-namespace", "--set", "replicas=0")
		DeferCleanup(func(ctx SpecContext) { // after the last operator has stopped, unlike AfterAll
			run(ctx, "helm", "uninstall", release, "-n", namespace)
			removeAll(ctx)
		})
	})

	It("provide metrics by TLS, to users who may read them", func(ctx SpecContext) {
		address := bedtest.FreeAddress(GinkgoT())
		startOperator(ctx, "--metrics-bind-address="+address)

		reader := accountToken(ctx, "reader", namespace+"-metrics-reader")
		Eventually(status(ctx, "https://"+address+"/metrics", reader)).Should(Equal(http.StatusOK))

		other := accountToken(ctx, "other", namespace+"-edit", "view")
		Expect(status(ctx, "https://"+address+"/metrics", other)()).To(Equal(http.StatusForbidden))
		Expect(status(ctx, "https://"+address+"/metrics", "")()).To(Equal(http.StatusUnauthorized))
		Expect(status(ctx, "https://"+address+"/metrics", reader+"x")()).To(BeNumerically(">=", http.StatusBadRequest))

		// The server resets the connection or explains that it expects TLS.
		code, page, _ := get(ctx, http.DefaultClient, "http://"+address+"/metrics", reader)
		Expect(code).To(BeElementOf(0, http.StatusBadRequest))
		Expect(page).NotTo(ContainSubstring("capstan_"))
	})

	It("provide no profiles, except on request and inside the pod", func(ctx SpecContext) {
		metrics, profiles := bedtest.FreeAddress(GinkgoT()), bedtest.FreeAddress(GinkgoT())
		root := accountToken(ctx, "root", "cluster-admin")
		operator := startOperator(ctx, "--metrics-bind-address="+metrics)
		Eventually(status(ctx, "https://"+metrics+"/metrics", root)).Should(Equal(http.StatusOK))
		Expect(status(ctx, "https://"+metrics+"/debug/pprof/", root)()).To(Equal(http.StatusNotFound))
		Expect(operator.Stop()).To(Succeed())

		startOperator(ctx, "--metrics-bind-address="+metrics, "--pprof-bind-address="+profiles)
		Eventually(status(ctx, "http://"+profiles+"/debug/pprof/heap", "")).Should(Equal(http.StatusOK))
		Eventually(status(ctx, "https://"+metrics+"/debug/pprof/", root)).Should(Equal(http.StatusNotFound))
	})

	It("use the certificate that the user provides, also after it is renewed", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		address, token := bedtest.FreeAddress(GinkgoT()), accountToken(ctx, "verifier", namespace+"-metrics-reader")

		for renewed := range 2 {
			verifying := writeCertificate(folder)
			if renewed == 0 {
				startOperator(ctx, "--metrics-bind-address="+address, "--metrics-cert-path="+folder)
			}

			Eventually(func() (int, error) {
				code, _, err := get(ctx, verifying, "https://"+address+"/metrics", token)
				return code, err
			}).Should(Equal(http.StatusOK))
		}
	})

	It("provide metrics by HTTP to all on request", func(ctx SpecContext) {
		address := bedtest.FreeAddress(GinkgoT())
		startOperator(ctx, "--metrics-bind-address="+address, "--metrics-secure=false")
		Eventually(status(ctx, "http://"+address+"/metrics", "")).Should(Equal(http.StatusOK))
	})
})
