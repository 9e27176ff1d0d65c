//go:build unix

package bed

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/capstan-project/capstan/test/bed/tools"
)

const patience = 30 * time.Second

// childVariable makes this program start a bed, report it, and wait to be killed.
const childVariable = "BED_TEST_CHILD"

// childReport is the report of the child process, written as one line of JSON.
type childReport struct {
	Dir  string
	PIDs []int
}

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}

	b, err := Start(context.Background(), Options{})
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(childReport{Dir: b.Dir(), PIDs: b.pids()})
	}

	if err == nil {
		err = b.Wait(context.Background())
	}

	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (b *Bed) pids() []int {
	var pids []int
	for _, p := range b.processes {
		pids = append(pids, p.cmd.Process.Pid)
	}

	return pids
}

// alive returns the processes that are running, not counting zombies.
func alive(pids []int) []int {
	var living []int

	for _, pid := range pids {
		if syscall.Kill(pid, 0) != nil {
			continue
		}

		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && strings.Contains(string(status), "State:\tZ") {
			continue // a zombie
		}

		living = append(living, pid)
	}

	return living
}

func start(t *testing.T, options Options) *Bed {
	t.Helper()

	begin := time.Now()

	b, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}

	t.Logf("a bed was up after %.1f s", time.Since(begin).Seconds())
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})

	return b
}

func client(t *testing.T, b *Bed, user string) dynamic.Interface {
	t.Helper()

	config, err := b.ConfigFor(user)
	if err != nil {
		t.Fatal(err)
	}

	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()

	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}

	return o
}

// The suites of the project show that a control plane works, also next to others.
func TestBed(t *testing.T) {
	logs := t.TempDir()
	b := start(t, Options{Nodes: 1, WithoutCertManager: true, LogDir: logs})
	pids := b.pids()

	t.Run("logs the requests of each user", func(t *testing.T) { logsRequests(t, b) })
	t.Run("provides kubeconfigs", func(t *testing.T) { providesKubeconfigs(t, b) })
	t.Run("does not share what kubectl remembers", func(t *testing.T) { hasOwnHome(t, b) })
	t.Run("can have several registries", func(t *testing.T) { hasRegistries(t, b) })

	pids = append(pids, b.pids()[len(pids):]...)

	g := NewWithT(t)
	g.Expect(alive(pids)).To(Equal(pids))

	t.Run("reports a component that has died", func(t *testing.T) { reportsDeadComponent(t, b) })

	g.Expect(b.Stop()).To(Succeed())
	g.Expect(alive(pids)).To(BeEmpty())
	g.Expect(b.Dir()).NotTo(BeADirectory())
	g.Expect(b.Stop()).To(Succeed(), "a second time")
	g.Expect(os.ReadFile(filepath.Join(logs, "kube-apiserver.log"))).To(ContainSubstring("v1."))
	g.Expect(filepath.Join(logs, "audit.log")).To(BeARegularFile())
}

func TestOptions(t *testing.T) {
	g := NewWithT(t)
	_, err := (&Bed{options: Options{WithoutAudit: true}}).Requests(nil)
	g.Expect(err).To(MatchError("the bed was started without an audit log"), "rather than no requests")

	_, err = Start(t.Context(), Options{WithoutControllers: true})
	g.Expect(err).To(MatchError("a bed without controllers cannot have nodes"))
}

func logsRequests(t *testing.T, b *Bed) {
	g := NewWithT(t)
	c := client(t, b, "auditor").Resource(configMaps).Namespace("default")
	note := object(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note"}}`)
	_, err := c.Create(t.Context(), note, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.Create(t.Context(), note, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	for range 3 {
		_, err = c.Get(t.Context(), "note", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}

	second := int64(1)
	watch, err := c.Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: &second})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(watch.ResultChan()).WithTimeout(patience).Should(BeClosed())

	byAuditor := func(r Request) bool { return r.User == "auditor" }

	var requests []Request

	g.Eventually(func() (map[string]int, error) {
		requests, err = b.Requests(byAuditor)
		return Count(requests, func(r Request) string { return r.Verb + " " + r.Resource }), err
	}).WithTimeout(patience).Should(Equal(map[string]int{
		"create configmaps": 2,
		"get configmaps":    3,
		"watch configmaps":  1,
	}))

	writes := Count(requests, func(r Request) string { return fmt.Sprintf("%t %d", r.Write(), r.Code) })
	g.Expect(writes).To(Equal(map[string]int{"true 201": 1, "false 201": 1, "false 200": 4}), "a dry run writes nothing")

	leases, err := b.Requests(Request.Lease)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(leases).NotTo(BeEmpty(), "the API server and the nodes keep Leases")

	everyone, err := b.Requests(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Count(everyone, func(r Request) string { return r.User })).To(HaveKey("system:kube-scheduler"))
}

func providesKubeconfigs(t *testing.T, b *Bed) {
	g := NewWithT(t)
	other, err := b.KubeconfigFor("team/a:operator")
	g.Expect(err).NotTo(HaveOccurred())

	for path, user := range map[string]string{b.Kubeconfig(): "admin", other: "team/a:operator"} {
		whoami := exec.CommandContext(
			t.Context(),
			b.Binary(tools.Kubectl),
			"auth",
			"whoami",
			"-o",
			"jsonpath={.status.userInfo.username}",
		)

		whoami.Env = append(os.Environ(), "KUBECONFIG="+path)
		g.Expect(whoami.Output()).To(BeEquivalentTo(user))
	}
}

func hasOwnHome(t *testing.T, b *Bed) {
	g := NewWithT(t)
	home := t.TempDir()
	t.Setenv("HOME", home)

	resources, err := b.Command(t.Context(), tools.Kubectl, "api-resources").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(resources))
	g.Expect(string(resources)).To(ContainSubstring("configmaps"))
	g.Expect(os.ReadDir(home)).To(BeEmpty(), "another bed that gets the same port reads it")
}

func hasRegistries(t *testing.T, b *Bed) {
	g := NewWithT(t)
	addresses := map[string]bool{}

	for range 2 {
		address, err := b.StartRegistry(t.Context())
		g.Expect(err).NotTo(HaveOccurred())

		addresses[address] = true
		response, err := http.Get("http://" + address + "/v2/")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(Equal(http.StatusOK))
	}

	g.Expect(addresses).To(HaveLen(2))
}

func TestKilledProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills the components of a process that was killed")
	}

	g := NewWithT(t)
	child := exec.Command(os.Args[0])

	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(child.Start()).To(Succeed())
	t.Cleanup(func() { _ = child.Process.Kill() })

	line, err := bufio.NewReader(output).ReadBytes('\n')
	g.Expect(err).NotTo(HaveOccurred())

	var report childReport
	g.Expect(json.Unmarshal(line, &report)).To(Succeed())
	g.Expect(alive(report.PIDs)).To(And(Equal(report.PIDs), HaveLen(5)))

	g.Expect(child.Process.Kill()).To(Succeed())
	g.Expect(child.Wait()).NotTo(Succeed())
	g.Eventually(func() []int { return alive(report.PIDs) }).WithTimeout(patience).Should(BeEmpty())
	g.Expect(report.Dir).To(BeADirectory())

	dir, err := newWorkDir(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Dir).NotTo(BeADirectory(), "the next bed removes the folder")
	g.Expect(dir.path).To(BeADirectory())
	g.Expect(dir.remove()).To(Succeed())
}

func reportsDeadComponent(t *testing.T, b *Bed) {
	g := NewWithT(t)

	for _, p := range b.processes {
		if strings.HasSuffix(p.log, tools.Scheduler+".log") {
			g.Expect(p.cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	g.Expect(b.Wait(ctx)).To(MatchError(ContainSubstring("kube-scheduler has died")))
}

func TestFailedStart(t *testing.T) {
	g := NewWithT(t)
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	_, err := Start(t.Context(), Options{APIServerFlags: []string{"--no-such-flag"}})
	g.Expect(err).
		To(MatchError(And(ContainSubstring("kube-apiserver has died"), ContainSubstring("unknown flag: --no-such-flag"))))
	left, err := filepath.Glob(filepath.Join(base, "*", "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(HaveExactElements(HaveSuffix("/lock")))
}
