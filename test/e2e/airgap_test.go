package e2e

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capstan-project/capstan/test/harness"
)

// The addresses of the virtual cable between this machine and the isolated network.
const (
	outside = "10.213.77.1"
	inside  = "10.213.77.2"
)

// newIsolatedNetwork creates a network namespace with a single route, to the address outside, and
// returns its name.
func newIsolatedNetwork() string {
	GinkgoHelper()

	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		Skip("network namespaces require Linux and root")
	}

	name := fmt.Sprintf("capstan-%d", os.Getpid())
	cable := fmt.Sprintf("cap%d", os.Getpid())

	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		Skip("network namespaces cannot be created here: " + string(out))
	}

	DeferCleanup(func() { Expect(exec.Command("ip", "netns", "delete", name).Run()).To(Succeed()) })

	for _, command := range []string{
		"ip link add " + cable + " type veth peer name inner netns " + name,
		"ip address add " + outside + "/30 dev " + cable,
		"ip link set " + cable + " up",
		"ip -n " + name + " address add " + inside + "/30 dev inner",
		"ip -n " + name + " link set inner up",
		"ip -n " + name + " link set lo up",
	} {
		out, err := exec.Command("sh", "-c", command).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), command+": "+string(out))
	}

	routes, err := exec.Command("ip", "-n", name, "route").Output()
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.TrimSpace(string(routes))).To(Equal("10.213.77.0/30 dev inner proto kernel scope link src " + inside))

	return name
}

// forward makes a loopback address of this machine reachable from the isolated network, and returns
// the address to use there.
func forward(to string) string {
	GinkgoHelper()

	listener, err := net.Listen("tcp", outside+":0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = listener.Close() })

	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}

			go func() {
				defer from.Close()

				onward, err := net.Dial("tcp", to)
				if err != nil {
					return
				}

				defer onward.Close()
				go func() { _, _ = io.Copy(onward, from) }()

				_, _ = io.Copy(from, onward)
			}()
		}
	}()

	return listener.Addr().String()
}

// isolatedKubeconfig returns the operator's kubeconfig with an address that the isolated network
// can reach.
func (w *world) isolatedKubeconfig() string {
	GinkgoHelper()

	path, err := w.bed.KubeconfigFor(harness.OperatorUser)
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.LoadFromFile(path)
	Expect(err).NotTo(HaveOccurred())

	for _, cluster := range config.Clusters {
		at, err := url.Parse(cluster.Server)
		Expect(err).NotTo(HaveOccurred())

		cluster.Server, cluster.TLSServerName = "https://"+forward(at.Host), at.Hostname()
	}

	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())

	return file
}
