package reconcile

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestMisrouted(t *testing.T) {
	parse := func(text string) []*unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		NewWithT(t).Expect(yaml.Unmarshal([]byte(text), &o.Object)).To(Succeed())
		o.SetName("x")

		return []*unstructured.Unstructured{o}
	}

	const (
		service = "{apiVersion: v1, kind: Service, metadata: {namespace: a, labels: {cluster.x-k8s.io/provider: " +
			"infrastructure-azure}}, spec: {selector: "
		manager = "{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: a, labels: {cluster.x-k8s.io/provider: " +
			"bootstrap-kubeadm}}, spec: {template: {metadata: {labels: {control-plane: manager, app: kubeadm}}}}}"
		found = "Service a/x of infrastructure-azure selects the pods of Deployment a/x of bootstrap-kubeadm"
	)

	pod := func(kind, namespace string) string {
		return "{kind: " + kind + ", metadata: {namespace: " + namespace + ", labels: {app: kubeadm}}}"
	}

	for name, test := range map[string]struct {
		service, workload string
		want              []string
	}{
		"a label that both have":  {service + "{control-plane: manager}}}", manager, []string{found}},
		"all labels":              {service + "{control-plane: manager, app: kubeadm}}}", manager, []string{found}},
		"one label that differs":  {service + "{control-plane: manager, app: azure}}}", manager, nil},
		"a label that is missing": {service + "{control-plane: manager, part: webhook}}}", manager, nil},
		"no selector":             {service + "{}}}", manager, nil},
		"a null selector":         {service + "null}}", manager, nil},
		"another kind of Service": {
			strings.Replace(service, ": v1,", ": serving.knative.dev/v1,", 1) + "{app: kubeadm}}}", manager, nil,
		},
		"a Pod": {
			service + "{app: kubeadm}}}", pod("Pod", "a"),
			[]string{"Service a/x of infrastructure-azure selects the pods of Pod a/x of "},
		},
		"a Pod in another namespace":  {service + "{app: kubeadm}}}", pod("Pod", "b"), nil},
		"an object that runs nothing": {service + "{app: kubeadm}}}", pod("ConfigMap", "a"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(misrouted(parse(test.service), parse(test.workload))).To(Equal(test.want))
		})
	}
}
