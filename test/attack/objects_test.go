package attack

import (
	"bytes"
	"compress/gzip"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// small is an infrastructure provider with a ConfigMap of its own name. Its source is a ConfigMap.
type small struct {
	namespace, name, version string
	// extra components, after a line of three hyphens.
	extra string
}

// small returns the attempt's provider.
func (a *arena) small(extra string) small { return small{tenant, a.name, "v1.0.0", extra} }

func (s small) components() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s-system}
---
%s%s`, s.name, note(s.name, s.name+"-system", "an honest value"), s.extra)
}

// metadata is the metadata of any release v1.
const metadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta2}
- {major: 1, minor: 1, contract: v1beta2}
`

// note returns a ConfigMap as YAML; the namespace may be empty.
func note(name, namespace, text string) string {
	place := ""
	if namespace != "" {
		place = ", namespace: " + namespace
	}

	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %q%s}\ndata:\n  text: %q\n", name, place, text)
}

func (s small) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: s.name + "-" + s.version,
			Labels: map[string]string{"provider": s.name, v1alpha2.ConfigMapVersionLabel: s.version},
		},
		Data: map[string]string{
			v1alpha2.ConfigMapMetadataKey: metadata, v1alpha2.ConfigMapComponentsKey: s.components(),
		},
	}
}

// compressed returns the ConfigMap with the components compressed.
func (s small) compressed() *corev1.ConfigMap {
	cm := s.configMap()
	cm.Annotations = map[string]string{v1alpha2.ConfigMapCompressedAnnotation: "true"}
	cm.BinaryData = map[string][]byte{v1alpha2.ConfigMapComponentsKey: compress([]byte(s.components()))}
	delete(cm.Data, v1alpha2.ConfigMapComponentsKey)

	return cm
}

func (s small) resource() *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: named(s.namespace, s.name)}
	p.Spec.Version = s.version
	p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"provider": s.name}},
	}

	return p
}

// by returns the resource, installed by an account of the tenant.
func (s small) by(account string) *v1alpha2.InfrastructureProvider {
	p := s.resource()
	p.Spec.ServiceAccountName = account

	return p
}

// from returns the resource with another source.
func (s small) from(config v1alpha2.FetchConfiguration) *v1alpha2.InfrastructureProvider {
	p := s.by("installer")
	p.Spec.FetchConfig = &config

	return p
}

// adminBinding makes the tenant's user cluster-admin, as YAML after a line of three hyphens.
func (a *arena) adminBinding() string { return a.adminBindingOf(tenantUser) }

// adminBindingOf is adminBinding, for any user.
func (a *arena) adminBindingOf(user string) string {
	return fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s-is-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, a.name, user)
}

// neverBound declares that adminBinding must not be created.
func (a *arena) neverBound() {
	a.neverExists(&rbacv1.ClusterRoleBinding{ObjectMeta: named("", a.name+"-is-admin")})
}

func compress(data []byte) []byte {
	var out bytes.Buffer

	zip := gzip.NewWriter(&out)
	_, _ = zip.Write(data)
	_ = zip.Close()

	return out.Bytes()
}
