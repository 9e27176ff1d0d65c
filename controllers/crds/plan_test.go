package crds

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

func TestIsNewer(t *testing.T) {
	for _, c := range []struct {
		version, than string
		want          bool
	}{
		{"v1.2.0", "v1.1.9", true},
		{"v1.2.0", "v1.2.0", false},
		{"v1.1.9", "v1.2.0", false},
		{"v1.2.0", "v1.2.0-rc.1", true},
		{"", "v1.2.0", false},
		{"latest", "v1.2.0", false},
		{"v1.2.0", "latest", false},
	} {
		NewWithT(t).Expect(isNewer(c.version, c.than)).To(Equal(c.want), "%s, %s", c.version, c.than)
	}
}

func TestManages(t *testing.T) {
	existing := &apiextensionsv1.CustomResourceDefinition{}

	for name, c := range map[string]struct {
		request Request
		live    *apiextensionsv1.CustomResourceDefinition
		want    bool
	}{
		"Upgrade, missing":     {Request{Policy: v1alpha2.CRDsUpgrade}, nil, true},
		"Upgrade, existing":    {Request{Policy: v1alpha2.CRDsUpgrade}, existing, true},
		"no policy":            {Request{}, existing, true},
		"CreateOnly, missing":  {Request{Policy: v1alpha2.CRDsCreateOnly}, nil, true},
		"CreateOnly, existing": {Request{Policy: v1alpha2.CRDsCreateOnly}, existing, false},
		"None":                 {Request{Policy: v1alpha2.CRDsNone}, nil, false},
		"unmanaged":            {Request{Unmanaged: []string{"a"}}, existing, false},
		"another unmanaged":    {Request{Unmanaged: []string{"b"}}, existing, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(c.request.manages("a", c.live)).To(Equal(c.want))
		})
	}
}

func TestFindRemovedVersions(t *testing.T) {
	definitionFile := chart.File{Data: []byte(`
spec:
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v1beta2, served: true}
  - {name: v1beta1, served: false}
`)}
	version := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: storage}
	}

	for name, c := range map[string]struct {
		live      []apiextensionsv1.CustomResourceDefinitionVersion
		stored    []string
		kept      []string
		retired   []string
		successor string
	}{
		"no version removed": {
			live:      []apiextensionsv1.CustomResourceDefinitionVersion{version("v1beta2", true, true)},
			stored:    []string{"v1beta2"},
			kept:      []string{},
			successor: "v1beta2",
		},
		"a stored version removed": {
			live:   []apiextensionsv1.CustomResourceDefinitionVersion{version("v1alpha1", true, true)},
			stored: []string{"v1alpha1"},
			kept:   []string{"v1alpha1"},
		},
		"served versions removed, and the storage version stays": {
			live: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1alpha1", true, false),
				version("v1beta1", true, false),
				version("v1beta2", true, false),
				version("v1", true, true),
			},
			stored:    []string{"v1"},
			kept:      []string{},
			retired:   []string{"v1alpha1", "v1beta1"},
			successor: "v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live := &apiextensionsv1.CustomResourceDefinition{}
			live.Spec.Versions = c.live
			live.Status.StoredVersions = c.stored
			change := &change{definition: newDefinition(definitionFile, ""), live: live}

			g.Expect(NewApplier(Clients{}).findRemovedVersions(change)).To(Succeed())
			g.Expect(change.kept).To(Equal(c.kept))
			g.Expect(change.retired).To(Equal(c.retired))
			g.Expect(change.successor).To(Equal(c.successor))
		})
	}
}
