package lanes_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/lanes"
)

func TestOf(t *testing.T) {
	remote := &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
		LocalSecretReference: v1alpha2.LocalSecretReference{Name: "berlin"}, Key: "value",
	}}

	for name, test := range map[string]struct {
		spec v1alpha2.ProviderSpec
		want string
	}{
		"the operator's own catalog": {v1alpha2.ProviderSpec{}, ""},
		"ConfigMaps": {v1alpha2.ProviderSpec{
			FetchConfig: &v1alpha2.FetchConfiguration{Selector: &metav1.LabelSelector{}}}, ""},
		"a folder of the operator": {v1alpha2.ProviderSpec{
			FetchConfig: &v1alpha2.FetchConfiguration{Directory: "/providers"}}, ""},
		"a web page": {v1alpha2.ProviderSpec{
			FetchConfig: &v1alpha2.FetchConfiguration{URL: "https://example.com"}}, "namespace fleet"},
		"a web server": {v1alpha2.ProviderSpec{
			FetchConfig: &v1alpha2.FetchConfiguration{HTTP: "https://example.com"}}, "namespace fleet"},
		"a registry": {v1alpha2.ProviderSpec{
			FetchConfig: &v1alpha2.FetchConfiguration{OCI: "example.com/a"}}, "namespace fleet"},
		"an image": {v1alpha2.ProviderSpec{
			FetchConfig: &v1alpha2.FetchConfiguration{Image: "example.com/a"}}, "namespace fleet"},
		"a remote cluster": {v1alpha2.ProviderSpec{KubeConfig: remote}, "cluster fleet/berlin/value"},
		"a remote cluster, from a registry": {v1alpha2.ProviderSpec{KubeConfig: remote,
			FetchConfig: &v1alpha2.FetchConfiguration{OCI: "example.com/a"}}, "cluster fleet/berlin/value"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet"}}
			p.Spec = test.spec
			NewWithT(t).Expect(lanes.Of(p)).To(Equal(test.want))
		})
	}
}
