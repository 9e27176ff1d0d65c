package patches

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Restarting restarts the pods of Deployments whose Secrets have changed since the newest revision: it
// counts these changes in an annotation of the pod template. A digest of the Secrets would do the same,
// but more users may read pods than Secrets, and could find out short values from it.
type Restarting struct {
	// Renderer renders first; nil for no other change.
	Renderer *Renderer
	// Namespace is that of objects without one.
	Namespace string
	// Installed are the objects of the newest revision. They are not changed.
	Installed []*unstructured.Unstructured
}

// Digest identifies what the user asks for. What is installed is not part of it.
func (r Restarting) Digest() string { return "restarting " + r.Renderer.Digest() }

// Render returns the manifest with the annotation. Everything else stays the same byte for byte.
func (r Restarting) Render(manifest []byte) ([]byte, error) {
	manifest, err := r.Renderer.Render(manifest)
	if err != nil {
		return nil, err
	}

	documents := read(manifest)

	changed, err := r.changedSecrets(documents)
	if err != nil {
		return nil, err
	}

	err = eachDeployment(documents, func(object *kyaml.RNode) (bool, error) {
		count, err := r.count(object, changed)
		if err != nil || count == 0 {
			return false, err
		}

		return true, object.PipeE(
			kyaml.LookupCreate(kyaml.MappingNode, "spec", "template"),
			kyaml.SetAnnotation(v1alpha2.SecretChangesAnnotation, strconv.Itoa(count)),
		)
	})
	if err != nil {
		return nil, err
	}

	return join(documents, len(manifest))
}

// changedSecrets returns the Secrets of the manifest that are installed with other content, as
// namespace/name.
func (r Restarting) changedSecrets(documents []*document) (map[string]bool, error) {
	changed := map[string]bool{}

	for _, d := range documents {
		if d.deleted || d.Kind != "Secret" || d.APIVersion != "v1" {
			continue
		}

		installed, secret := &corev1.Secret{}, &corev1.Secret{}
		if !r.find(d.Kind, d.Metadata.Namespace, d.Metadata.Name, installed) {
			continue
		}

		if err := yaml.Unmarshal(d.text, secret); err != nil {
			return nil, fmt.Errorf("read %s: not a valid Secret", d) // the cause may quote it
		}

		if !reflect.DeepEqual(content(secret), content(installed)) {
			changed[r.key(d.Metadata.Namespace, d.Metadata.Name)] = true
		}
	}

	return changed, nil
}

// content returns the data that a Secret has once it is applied.
func content(secret *corev1.Secret) map[string]string {
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}

	maps.Copy(data, secret.StringData)

	return data
}

// count returns how often the Secrets of a Deployment have changed, with the changes of now.
func (r Restarting) count(object *kyaml.RNode, changed map[string]bool) (int, error) {
	text, err := object.String()
	if err != nil {
		return 0, err
	}

	deployment, installed := &appsv1.Deployment{}, &appsv1.Deployment{}
	if err := yaml.Unmarshal([]byte(text), deployment); err != nil {
		return 0, err
	}

	if !r.find("Deployment", deployment.Namespace, deployment.Name, installed) {
		return 0, nil
	}

	count, _ := strconv.Atoi(installed.Spec.Template.Annotations[v1alpha2.SecretChangesAnnotation]) // 0 without it

	for _, name := range secretNames(&deployment.Spec.Template.Spec) {
		if changed[r.key(deployment.Namespace, name)] {
			return count + 1, nil
		}
	}

	return count, nil
}

// find reads an object of the newest revision, and reports whether it exists.
func (r Restarting) find(kind, namespace, name string, into any) bool {
	for _, o := range r.Installed {
		if o.GetKind() == kind && o.GetName() == name && r.key(o.GetNamespace(), "") == r.key(namespace, "") {
			return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into) == nil
		}
	}

	return false
}

// key identifies an object of a kind.
func (r Restarting) key(namespace, name string) string {
	if namespace == "" {
		namespace = r.Namespace
	}

	return namespace + "/" + name
}

// secretNames returns the names of the Secrets that the containers of a pod read.
func secretNames(pod *corev1.PodSpec) []string {
	var names []string

	for _, volume := range pod.Volumes {
		if volume.Secret != nil {
			names = append(names, volume.Secret.SecretName)
		}

		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				if source.Secret != nil {
					names = append(names, source.Secret.Name)
				}
			}
		}
	}

	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for _, c := range containers {
			names = append(names, environmentSecrets(&c)...)
		}
	}

	return names
}

// environmentSecrets returns the names of the Secrets that a container has environment variables from.
func environmentSecrets(c *corev1.Container) []string {
	var names []string

	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			names = append(names, from.SecretRef.Name)
		}
	}

	for _, variable := range c.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			names = append(names, variable.ValueFrom.SecretKeyRef.Name)
		}
	}

	return names
}
