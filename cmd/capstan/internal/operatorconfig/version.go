package operatorconfig

import (
	"cmp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// VersionLabel is the label of the operator's Deployment with the version of its chart.
const VersionLabel = "app.kubernetes.io/version"

// Version returns the version of the operator: the tag of its image, and if there is none, as with a digest, that of
// its chart; empty if it is unknown.
func Version(deployment *appsv1.Deployment) string {
	image := ""
	if container := Container(deployment); container != nil {
		image = container.Image
	}

	return cmp.Or(tag(image), deployment.Labels[VersionLabel])
}

// tag returns the tag of an image; empty if it has none, or a digest, which takes precedence over the tag.
func tag(image string) string {
	if strings.Contains(image, "@") {
		return ""
	}

	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")

	return tag
}
