package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// notMountedError means that a file does not come from a Secret or ConfigMap.
type notMountedError struct{ path string }

func (e *notMountedError) Error() string {
	return fmt.Sprintf("the file %s is in no Secret or ConfigMap that the operator mounts", e.path)
}

func isNotMounted(err error) bool { return errors.As(err, new(*notMountedError)) }

// read returns the content of a file in the container.
func (m *mounts) read(ctx context.Context, file string) ([]byte, error) {
	file = path.Clean(file)

	for _, mount := range m.mounts {
		name, found := relative(mount, file)
		if !found {
			continue
		}

		for _, volume := range m.volumes {
			if volume.Name != mount.Name {
				continue
			}

			for _, s := range sources(volume) {
				if key, found := s.key(name); found {
					return m.value(ctx, s, key)
				}
			}
		}
	}

	return nil, &notMountedError{file}
}

// relative returns a file's path in the volume that a mount is of.
func relative(mount corev1.VolumeMount, file string) (string, bool) {
	if file == path.Clean(mount.MountPath) {
		return mount.SubPath, mount.SubPath != ""
	}

	name, found := strings.CutPrefix(file, path.Clean(mount.MountPath)+"/")

	return path.Join(mount.SubPath, name), found
}

// volumeSource is a Secret or ConfigMap in a volume.
type volumeSource struct {
	object client.Object // *corev1.Secret or *corev1.ConfigMap
	items  []corev1.KeyToPath
}

func newSecret(name string, items []corev1.KeyToPath) volumeSource {
	secret := &corev1.Secret{}
	secret.Name = name

	return volumeSource{secret, items}
}

func newConfigMap(name string, items []corev1.KeyToPath) volumeSource {
	configMap := &corev1.ConfigMap{}
	configMap.Name = name

	return volumeSource{configMap, items}
}

// sources returns the Secrets and ConfigMaps of a volume.
func sources(volume corev1.Volume) []volumeSource {
	switch {
	case volume.Secret != nil:
		return []volumeSource{newSecret(volume.Secret.SecretName, volume.Secret.Items)}
	case volume.ConfigMap != nil:
		return []volumeSource{newConfigMap(volume.ConfigMap.Name, volume.ConfigMap.Items)}
	case volume.Projected == nil:
		return nil
	}

	var all []volumeSource

	for _, s := range volume.Projected.Sources {
		if s.Secret != nil {
			all = append(all, newSecret(s.Secret.Name, s.Secret.Items))
		}

		if s.ConfigMap != nil {
			all = append(all, newConfigMap(s.ConfigMap.Name, s.ConfigMap.Items))
		}
	}

	return all
}

// key returns the key whose value is mounted at a path. Without items, keys are paths.
func (s volumeSource) key(file string) (string, bool) {
	if len(s.items) == 0 {
		return file, !strings.Contains(file, "/")
	}

	for _, item := range s.items {
		if path.Clean(item.Path) == file {
			return item.Key, true
		}
	}

	return "", false
}

// value reads a key of a Secret or ConfigMap.
func (m *mounts) value(ctx context.Context, s volumeSource, key string) ([]byte, error) {
	name := client.ObjectKey{Namespace: m.namespace, Name: s.object.GetName()}

	if err := m.reader.Get(ctx, name, s.object); err != nil {
		return nil, err
	}

	var (
		data  []byte
		found bool
	)

	switch o := s.object.(type) {
	case *corev1.Secret:
		data, found = o.Data[key]
	case *corev1.ConfigMap:
		var text string

		if data, found = o.BinaryData[key]; !found {
			text, found = o.Data[key]
			data = []byte(text)
		}
	}

	if !found {
		return nil, fmt.Errorf("%T %s has no key %s", s.object, name, key)
	}

	return data, nil
}
