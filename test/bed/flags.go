package bed

import (
	"fmt"
	"net"

	"github.com/capstan-project/capstan/test/bed/tools"
)

// Files in the bed's folder that components read or create.
const (
	etcdSocket          = "etcd.sock"
	etcdFolder          = "etcd"
	caFile              = "ca.crt"
	serverCertFile      = "apiserver.crt"
	serverKeyFile       = "apiserver.key"
	serviceAccountsFile = "serviceaccounts.key"
	auditPolicyFile     = "audit.yaml"
)

// auditPolicy logs each request once, when its response is complete. A watch is logged when it
// ends.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules: [{level: Metadata}]
`

// serviceAddresses is the range of ClusterIPs. Nothing answers on them. The first one belongs to
// the Service default/kubernetes.
const serviceAddresses = "10.0.0.0/16"

var firstServiceAddress = net.IPv4(10, 0, 0, 1)

func (b *Bed) etcdFlags() []string {
	return []string{
		"--data-dir=" + b.file(etcdFolder),
		"--unsafe-no-fsync",
		"--listen-client-urls=unix://" + b.file(etcdSocket),
		// Required but unused, since there is one member and one client.
		"--advertise-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:0",
		"--log-level=warn",
	}
}

func (b *Bed) apiServerFlags() []string {
	flags := []string{
		"--etcd-servers=unix://" + b.file(etcdSocket),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", b.port.number),
		"--permit-port-sharing",           // shares the reserved port
		"--endpoint-reconciler-type=none", // endpoints cannot be loopback addresses
		"--service-cluster-ip-range=" + serviceAddresses,
		"--tls-cert-file=" + b.file(serverCertFile),
		"--tls-private-key-file=" + b.file(serverKeyFile),
		"--client-ca-file=" + b.file(caFile),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + b.file(serviceAccountsFile),
		"--service-account-signing-key-file=" + b.file(serviceAccountsFile),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged",
	}
	if !b.options.WithoutAudit {
		flags = append(flags,
			"--audit-policy-file="+b.file(auditPolicyFile),
			"--audit-log-path="+b.AuditLog(),
			"--audit-log-maxsize=10000", // megabytes; only the current file of a rotated log would be read
		)
	}

	return append(flags, b.options.APIServerFlags...)
}

func (b *Bed) controllerManagerFlags() []string {
	return append([]string{
		"--kubeconfig=" + b.kubeconfigPath(userOf(tools.ControllerManager)),
		"--root-ca-file=" + b.file(caFile),
		"--service-account-private-key-file=" + b.file(serviceAccountsFile),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		// kwok postpones the heartbeat of a node with each change of it, for example of its labels. After the default of
		// 50 s, the controller marks all pods of the node as not ready, and kwok never makes them ready again.
		"--node-monitor-grace-period=1h",
	}, b.options.ControllerManagerFlags...)
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

// kwokFlags returns the flags of kwok, which has no rate limit of its own.
func (b *Bed) kwokFlags() []string {
	return []string{
		"--kubeconfig=" + b.kubeconfigPath(userOf(tools.Kwok)),
		"--config=" + b.tools.Manifests(tools.KwokStages),
		"--config=" + b.file(stagesFile),
		"--manage-all-nodes",
	}
}
