package audit_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/contract/audit"
)

func TestReadVersion(t *testing.T) {
	const served, unserved = true, false

	crd := func(labels map[string]string, versions ...bool) *apiextensionsv1.CustomResourceDefinition {
		c := &apiextensionsv1.CustomResourceDefinition{}
		c.Labels = labels

		for i, name := range []string{"v1beta1", "v1beta2", "v1"}[:len(versions)] {
			c.Spec.Versions = append(c.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
				Name: name, Served: versions[i], Storage: i == len(versions)-1,
			})
		}

		return c
	}

	for name, c := range map[string]struct {
		crd        *apiextensionsv1.CustomResourceDefinition
		core, want string
	}{
		"the newest one of the contract": {
			crd(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta1_v1beta2"}, served, served, served), "v1beta2", "v1beta2",
		},
		"of an older contract, if there is no other": {
			crd(map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1"}, served, served), "v1beta2", "v1beta1",
		},
		"of the contract that core has": {
			crd(map[string]string{
				"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2",
			}, served, served), "v1beta1", "v1beta1",
		},
		"another one if it is not served": {
			crd(map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta1"}, unserved, served), "v1beta2", "v1beta2",
		},
		"the stored one without a contract": {crd(nil, served, served), "v1beta2", "v1beta2"},
		"none if none is served":            {crd(nil, unserved, unserved), "v1beta2", ""},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(audit.ReadVersion(c.crd, c.core)).To(Equal(c.want)) })
	}
}
