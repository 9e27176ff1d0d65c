package values_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestContainer covers how spec.deployment.containers become values.
func TestContainer(t *testing.T) {
	chart := buildChart(t, managerComponents)

	for name, c := range map[string]struct {
		containers string
		// change turns the published containers into the expected ones.
		change func(manager, proxy, prepare *corev1.Container)
	}{
		"imageUrl": {
			`[{name: manager, imageUrl: "quay.io/dev/mydns:v3.4.2"}]`,
			func(manager, _, _ *corev1.Container) { manager.Image = "quay.io/dev/mydns:v3.4.2" },
		},
		"image, its tag": {
			`[{name: manager, image: {tag: v2}}]`,
			func(manager, _, _ *corev1.Container) { manager.Image = "registry.k8s.io/tiny/tiny-controller:v2" },
		},
		"image, all of it": {
			`[{name: manager, image: {repository: quay.io/dev, name: mydns, tag: v2}}]`,
			func(manager, _, _ *corev1.Container) { manager.Image = "quay.io/dev/mydns:v2" },
		},
		"an empty image": {
			`[{name: manager, image: {}, imageUrl: ""}]`,
			func(_, _, _ *corev1.Container) {},
		},
		"args replace and add, except --namespace of the manager": {
			`[{name: manager, args: {--webhook-port: "3456", --log_dir: /var/log, --namespace: a, b: c}}]`,
			func(manager, _, _ *corev1.Container) {
				manager.Args = []string{
					"--leader-elect",
					"--webhook-port=3456",
					"--feature-gates=Pool=false,Old=true",
					"--v=0",
					"--b=c",
					"--log_dir=/var/log",
				}
			},
		},
		"args of another container": {
			`[{name: proxy, args: {--namespace: other}}]`,
			func(_, proxy, _ *corev1.Container) { proxy.Args = []string{"--namespace=other"} },
		},
		"env": {
			`[{name: manager, env: [
				{name: TEST1, value: other}, {name: NEW, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]`,
			func(manager, _, _ *corev1.Container) {
				edit(t, &manager.Env, `[{name: TEST1, value: other}, {name: TEST2, value: value2},
					{name: NEW, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`)
			},
		},
		"other fields": {
			`[{name: manager, resources: {limits: {memory: 16Gi}}, command: [/other, --flag]}]`,
			func(manager, _, _ *corev1.Container) {
				edit(t, &manager.Resources, `{limits: {cpu: 500m, memory: 16Gi}, requests: {cpu: 100m}}`)
				manager.Command = []string{"/other", "--flag"}
			},
		},
		"an init container": {
			`[{name: prepare, imageUrl: "quay.io/prepare:v2"}]`,
			func(_, _, prepare *corev1.Container) { prepare.Image = "quay.io/prepare:v2" },
		},
		"a container twice": {
			`[{name: proxy, command: [/a], args: {x: y, "--y": a}}, {name: proxy, args: {--x: z}}]`,
			func(_, proxy, _ *corev1.Container) {
				proxy.Command = []string{"/a"}
				proxy.Args = []string{"--namespace=own", "--x=z", "--y=a"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectChange(t, chart, "{deployment: {containers: "+c.containers+"}}", func(d *appsv1.Deployment) {
				c.change(containerNamed(t, d, "manager"), containerNamed(t, d, "proxy"), containerNamed(t, d, "prepare"))
			})
		})
	}
}
