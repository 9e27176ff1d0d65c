package attack

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// besideAttempts are of a publisher whose provider an administrator installs into the operator's own namespace, by an
// account that may do everything there, and nothing elsewhere.
var besideAttempts = []attempt{
	{"A provider in the operator's namespace, whose pods run as the operator", func(a *arena) string {
		a.neverExists(&appsv1.Deployment{ObjectMeta: named(operatorNamespace, a.name)})

		return a.besideOperator(fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[1]s-system}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {serviceAccountName: capstan, containers: [{name: manager, image: "registry.example.com/x:v1.0.0"}]}
`, a.name))
	}},
	{"A provider in the operator's namespace, which holds the operator's lease", func(a *arena) string {
		const lease = "capstan.operator.cluster.x-k8s.io"

		a.neverExists(&coordinationv1.Lease{ObjectMeta: named(operatorNamespace, lease)})

		return a.besideOperator(fmt.Sprintf(`---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: %s, namespace: %s-system}
spec: {holderIdentity: publisher, leaseDurationSeconds: 2000000000}
`, lease, a.name))
	}},
}

// besideOperator has a provider with more objects installed into the operator's namespace, and returns the operator's
// answer.
func (a *arena) besideOperator(extra string) string {
	a.Helper()

	s := small{operatorNamespace, a.name, "v1.0.0", extra}
	p := s.by("installer")
	a.provide(s.configMap(), p)

	return a.outcome(p)
}
