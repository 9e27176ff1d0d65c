package node

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// The configuration of containerd: folders, network plugins, and the shim of the same version.
const containerdConfig = `version = 3
root = %[1]q
state = %[2]q
[grpc]
  address = %[3]q
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %[4]q
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%[5]q]
    conf_dir = %[6]q
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      runtime_path = %[7]q
`

// The pod network is a bridge, whose address is the node's.
const networkConfig = `{
  "cniVersion": "1.0.0", "name": %[1]q,
  "plugins": [
    {"type": "bridge", "bridge": %[1]q, "isGateway": true, "ipMasq": false, "hairpinMode": true,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": %[2]q}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "loopback"}
  ]
}
`

// The configuration of kubelet. Nothing is evicted, so that low memory or disk space on the machine
// does not fail a test.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: %[1]q}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%[2]s
port: %[5]d
healthzPort: 0
podLogsDir: %[3]s
cgroupDriver: cgroupfs
cgroupRoot: %[4]s
cgroupsPerQOS: true
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: ""
imageGCHighThresholdPercent: 100
evictionHard:
  memory.available: "0%%"
  nodefs.available: "0%%"
  nodefs.inodesFree: "0%%"
  imagefs.available: "0%%"
  imagefs.inodesFree: "0%%"
shutdownGracePeriod: 0s
`

// kubeletPort is the port of the first node's kubelet.
const kubeletPort = 10250

// The configuration of kube-proxy. It leaves the machine's connection tracking limits unchanged.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: %[1]s
clientConnection: {kubeconfig: %[2]q}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
healthzBindAddress: ""
metricsBindAddress: ""
`

// configure writes the configuration files of the node's programs.
func (n *Node) configure() error {
	folder, err := plugins()
	if err != nil {
		return err
	}

	kubeconfig, err := n.bed.KubeconfigFor("system:kube-proxy")
	if err != nil {
		return err
	}

	for _, dir := range []string{"cni", "pods", "kubelet", "pki"} {
		if err := os.MkdirAll(n.file(dir), 0o755); err != nil {
			return err
		}
	}

	group := groupRoot + n.Name
	if err := makeGroup(group); err != nil {
		return err
	}

	authority := filepath.Join(n.bed.Dir(), "ca.crt")
	for file, content := range map[string]string{
		"containerd.toml": fmt.Sprintf(
			containerdConfig,
			n.file("root"),
			n.file("state"),
			n.file("containerd.sock"),
			PauseImage,
			folder,
			n.file("cni"),
			n.bed.Binary(tools.ContainerdShim),
		),
		"cni/pods.conflist": fmt.Sprintf(networkConfig, bridge(n.index), subnet(n.index)),
		"kubelet.yaml": fmt.Sprintf(
			kubeletConfig, authority, n.file("containerd.sock"), n.file("pods"), group, kubeletPort+n.index),
		"kube-proxy.yaml": fmt.Sprintf(proxyConfig, podAddresses, kubeconfig),
	} {
		if err := os.WriteFile(n.file(file), []byte(content), 0o600); err != nil {
			return err
		}
	}

	return nil
}

// makeGroup creates the control group of a node's pods: a single one in version 2, one for each
// resource in version 1.
func makeGroup(group string) error {
	trees := []string{"/sys/fs/cgroup"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		if trees, err = filepath.Glob("/sys/fs/cgroup/*"); err != nil {
			return err
		}
	}

	for _, tree := range trees {
		if err := os.MkdirAll(tree+group, 0o755); err != nil {
			return fmt.Errorf("make the control group of pods: %w", err)
		}
	}

	return nil
}
