package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/tools"
)

const (
	// Address is the address of the first node, and the one at which pods reach the API server.
	Address = "10.244.0.1"
	// podAddresses is the range of the pod addresses of all nodes.
	podAddresses = "10.244.0.0/16"
	// limit is how many nodes there can be.
	limit = 2
	// groupRoot begins the names of the nodes' control groups, which contain those of their pods.
	groupRoot = "/capstan-bed-"
	// startTimeout limits the start. On an idle machine the programs start within seconds.
	startTimeout = 2 * time.Minute
)

// PauseImage must be one of the imported images. It holds a pod's namespaces.
const PauseImage = "example.org/pause:v1"

// BedOptions returns the options of a control plane that a real node can join: without simulated
// nodes, and reachable from pods.
func BedOptions() bed.Options {
	return bed.Options{
		Nodes:              -1,
		WithoutCertManager: true,
		APIServerFlags: []string{
			"--bind-address=0.0.0.0",
			"--advertise-address=" + Address,
			"--endpoint-reconciler-type=lease",
		},
	}
}

// Node is a real node.
type Node struct {
	// Name is the name of its resource.
	Name string

	index    int
	bed      *bed.Bed
	dir      string
	programs []*exec.Cmd
}

// Start joins a real node to a bed with BedOptions. The index is 0 for the first node. A second node
// shares the network of the first, and its kube-proxy; both have kubelets, containers and pod
// addresses of their own. The program must be Isolated. Images come from archives; nothing is
// pulled. When Start returns, pods can be scheduled on the node. The caller must call Stop before
// the bed's.
func Start(ctx context.Context, b *bed.Bed, index int, archives ...string) (*Node, error) {
	name := fmt.Sprintf("node-%d", index)
	n := &Node{Name: name, index: index, bed: b, dir: filepath.Join(b.Dir(), name)}

	if err := n.configure(); err != nil {
		return nil, fmt.Errorf("configure the node: %w", err)
	}

	containerd := n.bed.Binary(tools.Containerd)
	if err := n.launch(containerd, "--config", n.file("containerd.toml"), "--log-level=warn"); err != nil {
		return nil, err
	}

	if err := n.waitFor(
		ctx,
		"containerd answers",
		func(ctx context.Context) error { return n.ctr(ctx, "version") },
	); err != nil {
		return nil, err
	}

	for _, archive := range archives {
		if err := n.ctr(ctx, "images", "import", archive); err != nil {
			return nil, err
		}
	}

	if err := n.startKubernetes(); err != nil {
		return nil, err
	}

	return n, n.waitFor(ctx, "the node is Ready", n.ready)
}

// startKubernetes starts kubelet and, on the first node, kube-proxy.
func (n *Node) startKubernetes() error {
	kubeconfig, err := n.bed.KubeconfigFor("system:node:" + n.Name)
	if err != nil {
		return err
	}

	if err := n.launch(
		n.bed.Binary(tools.Kubelet),
		"--config="+n.file("kubelet.yaml"),
		"--kubeconfig="+kubeconfig,
		"--root-dir="+n.file("kubelet"),
		"--cert-dir="+n.file("pki"),
		"--hostname-override="+n.Name,
		"--node-ip="+address(n.index),
	); err != nil || n.index > 0 {
		return err
	}

	return n.launch(
		n.bed.Binary(tools.KubeProxy),
		"--config="+n.file("kube-proxy.yaml"),
		"--hostname-override="+n.Name,
	)
}

// address returns the address of a node, which is that of its bridge.
func address(index int) string { return fmt.Sprintf("10.244.%d.1", index) }

// subnet returns the addresses of a node's pods, and its own.
func subnet(index int) string { return fmt.Sprintf("10.244.%d.0/24", index) }

// bridge returns the network interface of a node's pods.
func bridge(index int) string { return fmt.Sprintf("cni%d", index) }

// launch starts a program with its output in <name>.log.
func (n *Node) launch(program string, args ...string) error {
	log, err := os.Create(n.file(filepath.Base(program) + ".log"))
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.Command(program, args...)

	cmd.Stdout, cmd.Stderr = log, log
	if err := n.bed.Launch(cmd); err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(program), err)
	}

	n.programs = append(n.programs, cmd)

	return nil
}

// Stop ends the node, so that the bed's folder can be removed. Containers end with this program.
func (n *Node) Stop() error {
	for _, program := range n.programs {
		_ = program.Process.Kill() // fails only if the process has ended
		_ = program.Wait()         // an error means that it was killed
	}

	return unmount(n.dir)
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

// ctr runs containerd's own client on Kubernetes' images and containers.
func (n *Node) ctr(ctx context.Context, args ...string) error {
	args = slices.Concat([]string{"--address", n.file("containerd.sock"), "--namespace", "k8s.io"}, args)

	out, err := exec.CommandContext(ctx, n.bed.Binary(tools.Ctr), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args[4:], " "), err, out)
	}

	return nil
}

// ready reports whether pods can be scheduled on the node.
func (n *Node) ready(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.bed.Config())
	if err != nil {
		return err
	}

	node, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}

	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
			return nil
		}
	}

	return fmt.Errorf("node %s: %v, taints %v", n.Name, node.Status.Conditions, node.Spec.Taints)
}

// waitFor calls done until it returns nil. If it gives up, the error contains the ends of the
// programs' logs.
func (n *Node) waitFor(ctx context.Context, what string, done func(context.Context) error) error {
	var last error

	err := wait.PollUntilContextTimeout(
		ctx,
		100*time.Millisecond,
		startTimeout,
		true,
		func(ctx context.Context) (bool, error) {
			last = done(ctx)
			return last == nil, nil
		},
	)
	if err != nil {
		return fmt.Errorf("gave up waiting until %s: %w; %w\n%s", what, err, last, n.Logs())
	}

	return nil
}

// Logs returns the ends of the logs of the node's programs.
func (n *Node) Logs() string {
	var all strings.Builder

	files, _ := filepath.Glob(n.file("*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&all, "--- %s\n%s\n", filepath.Base(file), strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}

	return all.String()
}
