package attack

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// root is the module's root.
const root = "../.."

// Namespaces: the operator's, the victims' and the attacker's.
const (
	operatorNamespace = "capstan-system"
	victim            = "victim"
	tenant            = "tenant"
)

// Credentials of the operator, which no attacker may see.
const (
	registryUser     = "operator"
	registryPassword = "push-password-of-the-operator"
	gitHubToken      = "ghp_the-token-of-the-operator"
)

// world is a control plane with the chart's roles, a victim, a tenant, the operator and its registry.
type world struct {
	bed    *bed.Bed
	admin  client.WithWatch
	tenant client.Client // of the user tenant-user
	dir    string

	host           string // an address of this machine that is not a loopback address
	identity       tlsIdentity
	charts         *bed.Registry // the chart repository, with the operator's password
	publisher      *bed.Registry // of the attacker
	program        string
	kubeconfigFile string
	before         []client.Object // the victim's objects before the attempts
	metrics        string          // address of the operator's metrics
	log            string
	group          *memoryGroup

	operator atomic.Pointer[harness.Operator]
	restarts atomic.Int32
	stopping atomic.Bool

	number  atomic.Int32 // of arenas
	mu      sync.Mutex
	effects []effect
	seen    []string // what hostile servers received in headers

	atEnd func() string // what the tenant can read after all attempts; nil until then
}

func newWorld(t *testing.T) *world {
	g := NewWithT(t)
	w := &world{dir: t.TempDir(), host: outsideAddress(t)}
	w.log = filepath.Join(w.dir, "operator.log")
	w.bed = bedtest.Start(t, bed.Options{})

	var err error

	w.admin, err = client.NewWithWatch(w.bed.Config(), client.Options{Scheme: harness.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())

	w.tenant = w.as(g, tenantUser)

	w.program, err = harness.Program(t.Context(), root, w.dir, harness.OperatorProgram)
	g.Expect(err).NotTo(HaveOccurred())

	w.identity = newIdentity(g, w.host)
	w.charts = w.newRegistry(t, bed.RegistryOptions{TLS: true, User: registryUser, Password: registryPassword})
	w.publisher = w.newRegistry(t, bed.RegistryOptions{TLS: true})
	w.installChart(t)
	w.populate(t)
	w.startOperator(t)
	w.installVictim(t)

	return w
}

// as returns a client of a user.
func (w *world) as(g Gomega, user string) client.Client {
	config := w.bed.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}

	c, err := harness.NewClient(config)
	g.Expect(err).NotTo(HaveOccurred())

	return c
}

// outsideAddress returns an address of this machine for hostile servers. The operator refuses to
// connect to loopback addresses.
func outsideAddress(t *testing.T) string {
	addresses, err := net.InterfaceAddrs()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}

	t.Skip("this machine has no address but loopback ones, which the operator refuses")

	return ""
}

func (w *world) newRegistry(t *testing.T, options bed.RegistryOptions) *bed.Registry {
	options.Dir, options.Listen = t.TempDir(), w.host+":0"
	r, err := bed.RunRegistry(t.Context(), options)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	return r
}

// installChart installs the operator's chart without pods: the operator runs as a process, with the
// ServiceAccount and the permissions that the chart gives it.
func (w *world) installChart(t *testing.T) {
	g := NewWithT(t)
	chart, err := harness.BareChart(root, t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	out, err := w.bed.Command(t.Context(), "helm", "install", "capstan", chart, "-n", operatorNamespace,
		"--create-namespace", "--set", "replicas=0,flags.default-service-account=limited").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(harness.InstallCRDs(t.Context(), w.admin)).To(Succeed(), "wait until they are served")

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "capstan"}}
	w.kubeconfigFile = w.kubeconfigOf(t, account)
}

// kubeconfigOf returns the file of a ServiceAccount's kubeconfig.
func (w *world) kubeconfigOf(t *testing.T, account *corev1.ServiceAccount) string {
	g := NewWithT(t)
	token := &authenticationv1.TokenRequest{}
	g.Expect(w.admin.SubResource("token").Create(t.Context(), account, token)).To(Succeed())

	config, err := clientcmd.LoadFromFile(w.bed.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())

	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token.Status.Token
	}

	file := filepath.Join(w.dir, account.Namespace+"-"+account.Name+".kubeconfig")
	g.Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())

	return file
}

// startOperator runs the operator with the chart's memory limit, and again whenever it ends, as the
// kubelet would.
func (w *world) startOperator(t *testing.T) {
	g := NewWithT(t)
	login := base64.StdEncoding.EncodeToString([]byte(registryUser + ":" + registryPassword))
	config, ca := filepath.Join(w.dir, "config.json"), filepath.Join(w.dir, "registry-ca.crt")
	g.Expect(os.WriteFile(config, fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, w.charts.Address, login), 0o600)).
		To(Succeed())
	g.Expect(os.WriteFile(ca, w.charts.CA, 0o600)).To(Succeed())

	w.metrics = bedtest.FreeAddress(t)
	w.group = newMemoryGroup(t)

	flags := w.supported(t,
		"--default-service-account=limited", "--leader-election-namespace="+operatorNamespace,
		"--chart-repository=oci://"+w.charts.Address+"/charts",
		"--allow-http-sources=false", "--allowed-source-addresses="+w.host+"/32", "--allowed-source-hosts=*",
		"--remote-interval=10s",
		"--registry-config="+config, "--registry-ca="+ca, "--metrics-bind-address="+w.metrics)
	command := w.group.command("GITHUB_TOKEN="+gitHubToken, w.program)

	start := func() error {
		operator, err := harness.StartOperatorAs(w.bed, w.kubeconfigFile, command, w.log, flags...)
		w.operator.Store(operator)

		return err
	}
	g.Expect(start()).To(Succeed())

	ctx, stop := context.WithCancel(context.Background())

	t.Cleanup(func() {
		w.stopping.Store(true)
		stop()
		g.Expect(w.operator.Load().Stop()).To(Succeed())

		if t.Failed() {
			keep(t, w.log)
		}
	})

	go func() {
		for ctx.Err() == nil {
			if ended, _ := w.operator.Load().Exited(); ended && !w.stopping.Load() {
				w.restarts.Add(1)

				if start() != nil {
					return
				}
			}

			time.Sleep(50 * time.Millisecond)
		}
	}()
}

// keep copies the operator's log to where it outlives the test.
func keep(t *testing.T, log string) {
	if folder := os.Getenv("ATTACK_LOGS"); folder != "" {
		data, _ := os.ReadFile(log)
		_ = os.WriteFile(filepath.Join(folder, "operator.log"), data, 0o600)

		t.Logf("the operator's log is in %s", folder)
	}
}

// supported returns the flags that the operator has: an older one may be attacked.
func (w *world) supported(t *testing.T, flags ...string) []string {
	help, _ := exec.CommandContext(t.Context(), w.program, "--help").CombinedOutput()

	var known []string

	for _, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		if strings.Contains(string(help), name+" ") {
			known = append(known, f)
		}
	}

	return known
}

// report prints the line of an attempt.
func (w *world) report(tried, refused string) {
	const most = 230

	refused = strings.Join(strings.Fields(fmt.Sprintf("%+q", refused)), " ")
	refused = strings.Trim(strings.ReplaceAll(refused, `\"`, `"`), `"`)

	if len(refused) > most {
		refused = refused[:most] + "…"
	}

	fmt.Printf("%s\n    %s\n", tried, refused)
}
