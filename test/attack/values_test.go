package attack

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// valueAttempts write the Secret with the variables of an administrator's provider.
var valueAttempts = []attempt{
	{"A value of a variable becomes a ClusterRoleBinding", func(a *arena) string {
		s := a.site()

		return s.installWith("true\n" + s.binding()[4:] + "zz: |\n  x")
	}},
	{"A value of a variable that is no YAML, to read it in the status or an event", func(a *arena) string {
		s := a.site()
		a.never("a part of the value is shown", func(ctx context.Context) bool {
			events := &corev1.EventList{}
			if err := a.admin.List(ctx, events, client.InNamespace(s.home.namespace)); err != nil {
				return true // it is not known
			}

			p := s.home.resource()
			if err := a.admin.Get(ctx, client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil {
				return true
			}

			return strings.Contains(fmt.Sprint(events.Items, p.Status), "crown-jewel")
		})

		return s.installWith("*crown-jewel-" + a.name)
	}},
}

// installWith installs the provider with a flag that the developer sets by a variable, and returns the operator's
// answer.
func (s *site) installWith(value string) string {
	s.Helper()

	s.home.extra = fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s-controller-manager, namespace: %[1]s-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: manager
        image: registry.example.com/manager:v1.0.0
        args:
        - ${GATES:=--leader-elect}
`, s.home.name)
	variables := &corev1.Secret{ObjectMeta: named(s.home.namespace, "variables")}
	variables.StringData = map[string]string{"GATES": value}
	s.Expect(s.developer.Create(s.ctx, variables)).To(Succeed())

	return s.install(func(spec *v1alpha2.ProviderSpec) { spec.SecretName = variables.Name })
}
