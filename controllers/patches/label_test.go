package patches_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/patches"
)

func TestPlainObjectsAreLabelled(t *testing.T) {
	g := NewWithT(t)

	plain, err := patches.New(patches.Input{Label: "infrastructure-plain", Plain: true})
	g.Expect(err).NotTo(HaveOccurred())

	out, err := plain.Render([]byte(`---
# Source: plain/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
data: {key: "value"} # a comment
---
# Source: plain/templates/empty.yaml
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: b
  labels:
    app: b
    cluster.x-k8s.io/provider: infrastructure-other
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal(`---
# Source: plain/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  labels:
    cluster.x-k8s.io/provider: 'infrastructure-plain'
    clusterctl.cluster.x-k8s.io: ''
data: {key: "value"} # a comment
---
# Source: plain/templates/empty.yaml
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: b
  labels:
    app: b
    cluster.x-k8s.io/provider: infrastructure-plain
    clusterctl.cluster.x-k8s.io: ''
`))

	other, err := patches.New(patches.Input{Label: "infrastructure-other", Plain: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.Digest()).NotTo(Equal(plain.Digest()))
}
