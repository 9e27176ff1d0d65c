package managers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	// caVolume, caFolder and caKey are where containers find the CA certificates.
	caVolume = "capstan-ca"
	caFolder = "/etc/capstan/ca"
	caKey    = "ca.crt"

	// caVariable has the folders in which Go's programs look for CA certificates, besides the file of the image, and
	// caFolders are their defaults on Linux with the additional one.
	caVariable = "SSL_CERT_DIR"
	caFolders  = "/etc/ssl/certs:/etc/pki/tls/certs:" + caFolder
)

// ConfigMap returns the ConfigMap with the CA certificates for a provider, as YAML; empty if there are none. Its name
// depends on the certificates: programs read them only when they start, so pods have to be replaced with them.
func (s *Settings) ConfigMap(namespace, label string) (string, error) {
	if s == nil || s.CA == "" {
		return "", nil
	}

	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": metav1.ObjectMeta{
			Namespace: namespace,
			Name:      s.configMapName(label),
			Labels:    map[string]string{v1alpha2.ClusterctlLabel: "", v1alpha2.ClusterctlProviderLabel: label},
		},
		"immutable": true,
		"data":      map[string]string{caKey: s.CA},
	})

	return string(data), err
}

func (s *Settings) configMapName(label string) string {
	sum := sha256.Sum256([]byte(s.CA))
	return label + "-ca-" + hex.EncodeToString(sum[:])[:10]
}

// Apply changes the pods of a provider's Deployment, and reports whether anything was changed. What the Deployment sets
// itself takes precedence.
func (s *Settings) Apply(deployment *kyaml.RNode, label string) (bool, error) {
	pod, err := deployment.Pipe(kyaml.Lookup("spec", "template", "spec"))
	if err != nil || pod == nil || s == nil {
		return false, err
	}

	changed := false
	add := func(parent *kyaml.RNode, list, key, value string, element any) error {
		added, err := appendMissing(parent, list, key, value, element)
		changed = changed || added

		return err
	}

	for _, name := range s.ImagePullSecrets {
		if err := add(pod, "imagePullSecrets", "name", name, corev1.LocalObjectReference{Name: name}); err != nil {
			return false, err
		}
	}

	if s.CA != "" {
		if err := add(pod, "volumes", "name", caVolume, s.volume(label)); err != nil {
			return false, err
		}
	}

	err = eachContainer(pod, func(container *kyaml.RNode) error {
		for _, v := range s.variables() {
			if err := add(container, "env", "name", v.Name, corev1.EnvVar{Name: v.Name, Value: v.Value}); err != nil {
				return err
			}
		}

		if s.CA == "" {
			return nil
		}

		mount := corev1.VolumeMount{Name: caVolume, MountPath: caFolder, ReadOnly: true}

		return add(container, "volumeMounts", "mountPath", caFolder, mount)
	})

	return changed, err
}

// variables returns the environment variables of each container.
func (s *Settings) variables() []Variable {
	if s.CA == "" {
		return s.Environment
	}

	return append([]Variable{{caVariable, caFolders}}, s.Environment...)
}

func (s *Settings) volume(label string) corev1.Volume {
	source := &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: s.configMapName(label)},
	}

	return corev1.Volume{Name: caVolume, VolumeSource: corev1.VolumeSource{ConfigMap: source}}
}

// eachContainer calls change for each container and init container of a pod.
func eachContainer(pod *kyaml.RNode, change func(*kyaml.RNode) error) error {
	for _, list := range []string{"initContainers", "containers"} {
		containers, err := pod.Pipe(kyaml.Lookup(list))
		if err != nil {
			return err
		}

		if containers.IsNilOrEmpty() {
			continue
		}

		if err := containers.VisitElements(change); err != nil {
			return fmt.Errorf("%s: %w", list, err)
		}
	}

	return nil
}

// appendMissing appends an element to a list of an object unless it has one with the same key, and reports whether it
// did.
func appendMissing(parent *kyaml.RNode, list, key, value string, element any) (bool, error) {
	elements, err := parent.Pipe(kyaml.LookupCreate(kyaml.SequenceNode, list))
	if err != nil {
		return false, err
	}

	existing, err := elements.Pipe(kyaml.MatchElement(key, value))
	if err != nil || existing != nil {
		return false, err
	}

	text, err := yaml.Marshal(element)
	if err != nil {
		return false, err
	}

	node, err := kyaml.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return false, err
	}

	return true, elements.PipeE(kyaml.Append(node.YNode()))
}
