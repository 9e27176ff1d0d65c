package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestUnavailable(t *testing.T) {
	images := map[string][]string{"manager": {"manager:v2", "proxy:v1"}}

	for name, test := range map[string]struct {
		change   func(*appsv1.Deployment)
		replicas int32
		want     string // the beginning of a word in the reason
	}{
		"all is as wanted":           {func(*appsv1.Deployment) {}, 0, ""},
		"all is as wanted, two pods": {func(*appsv1.Deployment) {}, 2, ""},
		"another name":               {func(d *appsv1.Deployment) { d.Name = "other" }, 0, "no Deployment"},
		"another image": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[1].Image = "manager:v1"
		}, 0, "images"},
		"other replicas":             {func(*appsv1.Deployment) {}, 3, "replicas wanted"},
		"no replicas":                {func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 }, 0, "replicas wanted"},
		"a change that was not seen": {func(d *appsv1.Deployment) { d.Generation++ }, 0, "updated"},
		"an old pod":                 {func(d *appsv1.Deployment) { d.Status.Replicas++ }, 0, "3 replicas"},
		"a pod to update":            {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas-- }, 0, "1 updated"},
		"a pod that is not ready":    {func(d *appsv1.Deployment) { d.Status.AvailableReplicas-- }, 0, "1 available"},
	} {
		t.Run(name, func(t *testing.T) {
			d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "manager", Generation: 2}}
			d.Spec.Replicas = ptr.To[int32](2)
			d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "proxy:v1"}, {Image: "manager:v2"}}
			d.Status = appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2,
			}
			test.change(&d)

			got := unavailable([]appsv1.Deployment{d}, images, test.replicas)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("the reason is %q, want %q", got, test.want)
			}
		})
	}
}
