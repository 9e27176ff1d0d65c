package e2e

import (
	"context"
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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/mirror"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
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

// mirrored copies charts to the registry by means of an archive.
func (r *privateRegistry) mirrored(ctx context.Context, releases []*harness.Release) {
	GinkgoHelper()

	var items []*mirror.Item

	for _, release := range releases {
		made, err := chartgen.Build(release.Bundle)
		Expect(err).NotTo(HaveOccurred())
		item, err := mirror.NewChart(ctx, made)
		Expect(err).NotTo(HaveOccurred())

		items = append(items, item)
	}

	file := filepath.Join(GinkgoT().TempDir(), "mirror.tar")
	archive, err := mirror.CreateArchive(file)
	Expect(err).NotTo(HaveOccurred())
	Expect(mirror.Copy(ctx, items, archive, mirror.Options{Parallel: 4})).To(Succeed())
	Expect(archive.Close()).To(Succeed())

	carried, err := mirror.OpenArchive(ctx, file)
	Expect(err).NotTo(HaveOccurred())
	base, err := oci.ParseRepository("oci://" + r.Address + "/capi")
	Expect(err).NotTo(HaveOccurred())
	Expect(
		mirror.Copy(
			ctx,
			carried,
			&mirror.Registry{Client: r.client, Base: base},
			mirror.Options{Parallel: 4},
		),
	).To(Succeed())
}

var _ = Describe("Behind an air gap", func() {
	It(
		"five providers are installed from a mirror by resources with only a name and a version",
		func(ctx SpecContext) {
			name := newIsolatedNetwork()
			w := newWorld(ctx)

			r := newPrivateRegistry(ctx, outside+":0")
			repository, _ := testproviders.FolderOrSamples(root)

			var releases []*harness.Release

			for _, wanted := range harness.Standard {
				release, err := harness.Load(ctx, repository, wanted)
				Expect(err).NotTo(HaveOccurred())

				releases = append(releases, release)
			}

			r.mirrored(ctx, releases)

			var err error

			w.operator, err = harness.StartOperatorAs(
				w.bed,
				w.isolatedKubeconfig(),
				[]string{"ip", "netns", "exec", name, program},
				w.log,
				r.flags()...)
			Expect(err).NotTo(HaveOccurred())

			var resources []v1alpha2.Provider

			for _, release := range releases {
				Expect(w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: release.Namespace}})).To(
					Succeed())

				p := only(release.Type, release.Namespace, release.Bundle.Provider.Name, release.Bundle.Version)
				if len(release.Variables) > 0 {
					Expect(w.client.Create(ctx, release.Secret())).To(Succeed())
					p.GetSpec().SecretName = release.Secret().Name
				}

				Expect(w.client.Create(ctx, p)).To(Succeed())
				resources = append(resources, p)
			}

			for i, p := range resources {
				Eventually(w.read(ctx, p)).Should(beReady(releases[i].Bundle.Version))
				Expect(w.images(ctx, p.GetNamespace())).To(HaveEach(HavePrefix(r.Address + "/capi/")))
			}
		},
	)
})
