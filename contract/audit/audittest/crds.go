// Package audittest contains a healthy sample of what runs in a management cluster, and faults to plant
// in it. Tests of the rules and scenarios on an API server share it.
package audittest

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/contract"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// The labels of the providers in the sample. The kinds of Legacy implement only the contract v1beta1.
const (
	Core           = "cluster-api"
	Infrastructure = "infrastructure-example"
	ControlPlane   = "control-plane-example"
	Bootstrap      = "bootstrap-example"
	Legacy         = "infrastructure-legacy"
)

// groupSuffix follows the first part of a group's name.
const groupSuffix = "cluster.x-k8s.io"

// CRDs returns the CRDs of the sample. Their objects may have any field. The certificate is an authority's, in
// PEM.
func CRDs(certificate []byte) []*apiextensionsv1.CustomResourceDefinition {
	const newest, both = "v1beta2", "v1beta1,v1beta2"

	machine := crd(Infrastructure, "infrastructure.", "ExampleMachine", both)
	machine.Spec.Conversion = webhook(certificate)

	identity := crd(Infrastructure, "infrastructure.", "ExampleIdentity", newest)
	identity.Spec.Scope = apiextensionsv1.ClusterScoped
	identity.Labels["clusterctl.cluster.x-k8s.io/move-hierarchy"] = "true"

	legacyCluster := crd(Legacy, "infrastructure.", "LegacyCluster", "v1beta1")
	legacyMachine := crd(Legacy, "infrastructure.", "LegacyMachine", "v1beta1")
	legacyMachine.Spec.Versions[0].Deprecated = true // the API server warns of it in each response

	return []*apiextensionsv1.CustomResourceDefinition{
		crd(Core, "", "Cluster", newest),
		crd(Core, "", "Machine", newest),
		crd(Infrastructure, "infrastructure.", "ExampleCluster", newest),
		machine,
		crd(Infrastructure, "infrastructure.", "ExampleMachineTemplate", newest),
		crd(Infrastructure, "infrastructure.", "ExampleDisk", newest),
		identity,
		crd(ControlPlane, "controlplane.", "ExampleControlPlane", newest),
		crd(Bootstrap, "bootstrap.", "ExampleConfig", newest),
		legacyCluster,
		legacyMachine,
	}
}

// crd returns a namespaced CRD. All versions, separated by commas, are served and implement the contract of
// the same name; the last one is stored.
func crd(provider, group, kind, versions string) *apiextensionsv1.CustomResourceDefinition {
	group += groupSuffix
	name := contract.CalculateCRDName(group, kind)
	plural, _, _ := strings.Cut(name, ".")

	c := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1alpha2.ClusterctlLabel:         "",
			v1alpha2.ClusterctlProviderLabel: provider,
		}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind),
			},
		},
	}

	status := &apiextensionsv1.CustomResourceSubresourceStatus{}
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}

	for version := range strings.SplitSeq(versions, ",") {
		for i := range c.Spec.Versions {
			c.Spec.Versions[i].Storage = false
		}

		c.Labels[groupSuffix+"/"+version] = version
		c.Spec.Versions = append(c.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: true,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: status},
		})
		c.Status.StoredVersions = []string{version}
	}

	return c
}

// webhook returns a conversion webhook, which does not exist: all objects are stored in the version in which
// they are read.
func webhook(certificate []byte) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service:  &apiextensionsv1.ServiceReference{Namespace: "default", Name: "example-webhook"},
				CABundle: certificate,
			},
		},
	}
}
