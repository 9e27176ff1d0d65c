package bed

import (
	"fmt"
	"net"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// Files that components read, or make, in the bed's folder.
const (
	etcdSocket          = "etcd.sock"
	caFile              = "ca.crt"
	serverCertFile      = "apiserver.crt"
	serverKeyFile       = "apiserver.key"
	serviceAccountsFile = "serviceaccounts.key"
	auditPolicyFile     = "audit.yaml"
)

// auditPolicy logs each request once, when it is answered in full; a watch is one request, logged
// when it ends.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules: [{level: Metadata}]
`

// serviceAddresses is what ClusterIPs are taken from; nothing answers there. The first is that of
// the Service default/kubernetes.
const serviceAddresses = "10.0.0.0/16"

var firstServiceAddress = net.IPv4(10, 0, 0, 1)

func (b *Bed) etcdFlags() []string {
	return []string{
		"--data-dir=" + b.file("etcd"),
		"--unsafe-no-fsync",
		"--listen-client-urls=unix://" + b.file(etcdSocket),
		// Required, and used by nobody: there is one member and one client.
		"--advertise-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn",
	}
}

func (b *Bed) apiServerFlags() []string {
	return append([]string{
		"--etcd-servers=unix://" + b.file(etcdSocket),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", b.port.number),
		"--permit-port-sharing",           // with the socket that reserves the port
		"--endpoint-reconciler-type=none", // a loopback address cannot be an endpoint
		"--service-cluster-ip-range=" + serviceAddresses,
		"--tls-cert-file=" + b.file(serverCertFile),
		"--tls-private-key-file=" + b.file(serverKeyFile),
		"--client-ca-file=" + b.file(caFile),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + b.file(serviceAccountsFile),
		"--service-account-signing-key-file=" + b.file(serviceAccountsFile),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged",
		"--audit-policy-file=" + b.file(auditPolicyFile),
		"--audit-log-path=" + b.AuditLog(),
		"--audit-log-maxsize=10000", // megabytes; a log that is rotated would be read in part
	}, b.options.APIServerFlags...)
}

func (b *Bed) controllerManagerFlags() []string {
	return []string{
		"--kubeconfig=" + b.kubeconfigPath(userOf(tools.ControllerManager)),
		"--root-ca-file=" + b.file(caFile),
		"--service-account-private-key-file=" + b.file(serviceAccountsFile),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}
}

func (b *Bed) schedulerFlags() []string {
	return []string{
		"--kubeconfig=" + b.kubeconfigPath(userOf(tools.Scheduler)),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}
}

// kwokFlags: kwok has no rate limit of its own.
func (b *Bed) kwokFlags() []string {
	return []string{
		"--kubeconfig=" + b.kubeconfigPath(userOf(tools.Kwok)),
		"--config=" + b.tools.Manifests(tools.KwokStages),
		"--config=" + b.file(stagesFile),
		"--manage-all-nodes",
	}
}
