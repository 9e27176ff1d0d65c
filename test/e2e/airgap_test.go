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
	"github.com/capstan-project/capstan/chartgen/supply/mirror"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/fleet"
)

// The two ends of the only cable that leads into the island.
const (
	mainland = "10.213.77.1"
	island   = "10.213.77.2"
)

// newIsland makes a network namespace whose only route is to the mainland's address, and gives its
// name.
func newIsland() string {
	GinkgoHelper()

	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		Skip("a network namespace takes Linux and root")
	}

	name := fmt.Sprintf("capstan-%d", os.Getpid())
	cable := fmt.Sprintf("cap%d", os.Getpid())

	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		Skip("no network namespace can be made here: " + string(out))
	}

	DeferCleanup(func() { Expect(exec.Command("ip", "netns", "delete", name).Run()).To(Succeed()) })

	for _, command := range []string{
		"ip link add " + cable + " type veth peer name shore netns " + name,
		"ip address add " + mainland + "/30 dev " + cable,
		"ip link set " + cable + " up",
		"ip -n " + name + " address add " + island + "/30 dev shore",
		"ip -n " + name + " link set shore up",
		"ip -n " + name + " link set lo up",
	} {
		out, err := exec.Command("sh", "-c", command).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), command+": "+string(out))
	}

	routes, err := exec.Command("ip", "-n", name, "route").Output()
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.TrimSpace(string(routes))).To(Equal("10.213.77.0/30 dev shore proto kernel scope link src " + island))

	return name
}

// forward lets the island reach an address of the mainland's loopback, and gives where.
func forward(to string) string {
	GinkgoHelper()

	listener, err := net.Listen("tcp", mainland+":0")
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

// islandKubeconfig is the operator's kubeconfig with another address of the API server.
func (w *world) islandKubeconfig() string {
	GinkgoHelper()

	path, err := w.bed.KubeconfigFor(fleet.OperatorUser)
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

// silent observes nothing.
type silent struct{}

func (silent) Copied(*mirror.Item, int64)           {}
func (silent) Skipped(*mirror.Item, int64)          {}
func (silent) Finished(*mirror.Item, mirror.Result) {}

// mirrored carries charts into the registry in an archive.
func (r *privateRegistry) mirrored(ctx context.Context, releases []*fleet.Release) {
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
	Expect(mirror.Copy(ctx, items, archive, mirror.Options{Parallel: 4, Observer: silent{}})).To(Succeed())
	Expect(archive.Close(ctx)).To(Succeed())
	carried, err := mirror.OpenArchive(ctx, file)
	Expect(err).NotTo(HaveOccurred())
	base, err := oci.ParseRepository("oci://" + r.Address + "/capi")
	Expect(err).NotTo(HaveOccurred())
	Expect(
		mirror.Copy(
			ctx,
			carried,
			&mirror.Registry{Client: r.client, Base: base},
			mirror.Options{Parallel: 4, Observer: silent{}},
		),
	).To(Succeed())
}

var _ = Describe("Behind an air gap", func() {
	It(
		"five providers are installed from a mirror by resources that name only provider and version",
		func(ctx SpecContext) {
			name := newIsland()
			w := newWorld(context.WithoutCancel(ctx))

			DeferCleanup(func() { w.showLog() })

			r := newPrivateRegistry(ctx, mainland+":0")
			repository, _ := fleet.Repository(root)

			var releases []*fleet.Release

			for _, wanted := range fleet.Standard {
				release, err := fleet.Load(ctx, repository, wanted)
				Expect(err).NotTo(HaveOccurred())

				releases = append(releases, release)
			}

			r.mirrored(ctx, releases)

			var err error

			w.operator, err = fleet.StartOperatorAs(
				w.bed,
				w.islandKubeconfig(),
				[]string{"ip", "netns", "exec", name, program},
				w.log,
				r.flags()...)
			Expect(err).NotTo(HaveOccurred())

			var resources []v1alpha2.Provider

			for _, release := range releases {
				Expect(
					w.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: release.Namespace}}),
				).To(Succeed())

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
