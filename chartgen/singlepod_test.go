package chartgen

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestSinglePod(t *testing.T) {
	const (
		port   = "its container a uses port 2 of its node"
		claim  = "its volume v is a PersistentVolumeClaim, which may allow only one pod"
		folder = "its volume v holds data of one node"
	)

	for _, c := range []struct{ pod, want string }{
		{`{}`, ""},
		{`{hostNetwork: true}`, "its pods use the network of their node"},
		{`{containers: [{name: a, ports: [{containerPort: 1}]}]}`, ""},
		{`{containers: [{name: a, ports: [{containerPort: 1, hostPort: 0}]}]}`, ""},
		{`{containers: [{name: a, ports: [{containerPort: 1, hostPort: 2}]}]}`, port},
		{`{volumes: [{name: v, emptyDir: {}}]}`, ""},
		{`{volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}`, claim},
		{hostPath(`{path: /var/run/docker.sock}`, `{name: v}`), ""},
		{hostPath(`{path: /x, type: Socket}`, `{name: v}`), ""},
		{hostPath(`{path: /data}`, `{name: v}`), folder},
		{hostPath(`{path: /running}`, `{name: w}, {name: v}`), folder},
		{hostPath(`{path: /data}`, `{name: v, readOnly: true}`), ""},
		{hostPath(`{path: /data}`, `{name: other}`), ""},
		{strings.Replace(hostPath(`{path: /data}`, `{name: v}`), "containers", "initContainers", 1), folder},
	} {
		t.Run(c.pod, func(t *testing.T) {
			g := NewWithT(t)

			var spec map[string]any
			g.Expect(yaml.Unmarshal([]byte(`{template: {spec: `+c.pod+`}}`), &spec)).To(Succeed())
			g.Expect(singlePod(spec)).To(Equal(c.want))
		})
	}
}

// hostPath returns a pod with a volume v of its node, and a container with mounts.
func hostPath(path, mounts string) string {
	return `{volumes: [{name: v, hostPath: ` + path + `}], containers: [{name: a, volumeMounts: [` + mounts + `]}]}`
}

func TestElectsLeader(t *testing.T) {
	for args, want := range map[string]bool{
		"":                                    false,
		"--v=2":                               false,
		"--leader-elect":                      true,
		"-leader-elect=true":                  true,
		"--enable-leader-election":            true,
		"--leader-elect=false":                false,
		"--leader-elect --leader-elect=false": false,
		"--leader-elect=false --leader-elect": true,
		"--leader-elect-lease-duration=15s":   false,
	} {
		NewWithT(t).Expect(electsLeader(strings.Fields(args))).To(Equal(want), args)
	}
}
