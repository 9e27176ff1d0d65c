package apply

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestObstacleToReplacement(t *testing.T) {
	const (
		lost    = "what it represents may be lost with it"
		address = "its load balancer and address would be lost with it"
		volumes = "its volumes would be deleted with it"
		objects = "objects of users would be deleted with it, which no policy allows"
	)

	for live, want := range map[string]string{
		"{apiVersion: apps/v1, kind: Deployment}":                                     "",
		"{apiVersion: apps/v1, kind: StatefulSet}":                                    "",
		"{apiVersion: batch/v1, kind: Job}":                                           "",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding}":               "",
		"{apiVersion: v1, kind: Service}":                                             "",
		"{apiVersion: v1, kind: Service, spec: {type: NodePort}}":                     "",
		"{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}":                 address,
		"{apiVersion: serving.knative.dev/v1, kind: Service}":                         lost,
		"{apiVersion: v1, kind: PersistentVolumeClaim}":                               lost,
		"{apiVersion: v1, kind: PersistentVolume}":                                    lost,
		"{apiVersion: v1, kind: Namespace}":                                           objects,
		"{apiVersion: servicebus.azure.com/v1api20211101, kind: Namespace}":           objects,
		"{apiVersion: v1, kind: Namespace, metadata: {finalizers: [a/b]}}":            objects,
		"{apiVersion: v1, kind: Node}":                                                lost,
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}":       objects,
		"{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment}":                     lost,
		"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway}":                   lost,
		"{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSCluster}":     lost,
		"{apiVersion: apps/v1, kind: Deployment, metadata: {finalizers: [a/b, c/d]}}": "it has finalizers: a/b, c/d",
		"{apiVersion: apps/v1, kind: StatefulSet, " +
			"spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}}": volumes,
	} {
		t.Run(live, func(t *testing.T) {
			g := NewWithT(t)
			o := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal([]byte(live), &o.Object)).To(Succeed())
			kind := o.GroupVersionKind().GroupKind()
			g.Expect(obstacleToReplacement(kind, "", o)).To(Equal(want))

			if want == objects {
				g.Expect(obstacleToReplacement(kind, v1alpha2.RecreateNever, o)).To(Equal(want))
			} else {
				g.Expect(obstacleToReplacement(kind, v1alpha2.RecreateNever, o)).To(
					Equal("its annotation capstan.dev/recreate-policy is Never"))
			}

			if want == objects || len(o.GetFinalizers()) > 0 {
				g.Expect(obstacleToReplacement(kind, v1alpha2.RecreateAlways, o)).To(Equal(want))
			} else {
				g.Expect(obstacleToReplacement(kind, v1alpha2.RecreateAlways, o)).To(BeEmpty())
			}
		})
	}
}
