package conformance

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/test/harness"
)

// TestUnavailable: a Deployment can be highly available, or there is one reason why it cannot.
func TestUnavailable(t *testing.T) {
	const components = `
apiVersion: v1
kind: Service
metadata: {name: webhook}
spec: {selector: {app: example}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager}
spec:
  selector: {matchLabels: {app: example}}
  template:
    metadata: {labels: {app: example}}
    spec:
      containers:
      - name: manager
        image: registry.example.com/manager:v1
        args: [--leader-elect]
        ports: [{name: webhook-server, containerPort: 9443}]
`

	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"as it is": {},
		"a probe instead of the port": {
			change: []string{"ports: [{name: webhook-server, containerPort: 9443}]", "readinessProbe: {exec: {command: [x]}}"},
		},
		"no Service selects its pods": {change: []string{"webhook-server", "other", "selector: {app", "selector: {no"}},
		"nothing tells when it serves": {
			change: []string{"webhook-server", "other"}, want: "neither a readiness probe nor a port webhook-server",
		},
		"a host port":         {change: []string{"9443", "9443, hostPort: 9443"}, want: "uses port 9443 of its node"},
		"no leader election":  {change: []string{"--leader-elect", "--v=2"}, want: "it has no leader election"},
		"election by command": {change: []string{"args: [", "command: [/manager, "}},
		"all pods end before others start": {
			change: []string{"spec:\n  selector:", "spec:\n  strategy: {type: Recreate}\n  selector:"},
			want:   "its strategy Recreate stops all pods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			parsed, err := bundle.ParseComponents([]byte(strings.NewReplacer(c.change...).Replace(components)))
			g.Expect(err).NotTo(HaveOccurred())

			checked := &check{release: &release{Release: &harness.Release{Bundle: &bundle.Bundle{}}}}
			checked.checkAvailability(parsed)

			if c.want == "" {
				g.Expect(checked.findings).To(BeEmpty())
				return
			}

			g.Expect(checked.findings).To(ConsistOf(HaveField("Message", And(
				HavePrefix("has the Deployment manager, which cannot be highly available: "), ContainSubstring(c.want)))))
		})
	}
}
