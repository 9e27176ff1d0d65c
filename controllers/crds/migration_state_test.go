package crds

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestResumeMigration(t *testing.T) {
	wanted := migration{From: []string{"v1beta1"}, Retired: []string{"v1alpha1"}, Successor: "v1"}

	for name, c := range map[string]struct {
		stored []string
		saved  string
		want   migration
	}{
		"nothing saved": {
			stored: []string{"v1beta1", "v1"},
			want:   migration{To: "v1", From: []string{"v1beta1"}, Retired: []string{"v1alpha1"}, Successor: "v1"},
		},
		"not stored in the old version": {
			stored: []string{"v1"},
			want:   migration{To: "v1", From: []string{}, Retired: []string{"v1alpha1"}, Successor: "v1"},
		},
		"the same saved": {
			stored: []string{"v1beta1", "v1"},
			saved:  `{"to":"v1","from":["v1beta1"],"retired":["v1alpha1"],"successor":"v1","continue":"x","done":200}`,
			want: migration{
				To:        "v1",
				From:      []string{"v1beta1"},
				Retired:   []string{"v1alpha1"},
				Successor: "v1",
				Continue:  "x",
				Done:      200,
			},
		},
		"less saved": {
			stored: []string{"v1beta1", "v1"},
			saved:  `{"to":"v1","from":["v1beta1"],"successor":"v1","continue":"x","done":200}`,
			want:   migration{To: "v1", From: []string{"v1beta1"}, Retired: []string{"v1alpha1"}, Successor: "v1"},
		},
		"finished, but stored in the old version again": {
			stored: []string{"v1beta1", "v1"},
			saved:  `{"to":"v1","from":["v1beta1"],"retired":["v1alpha1"],"successor":"v1","finished":true}`,
			want:   migration{To: "v1", From: []string{"v1beta1"}, Retired: []string{"v1alpha1"}, Successor: "v1"},
		},
		"not readable": {
			stored: []string{"v1beta1", "v1"},
			saved:  `{"to":7}`,
			want:   migration{To: "v1", From: []string{"v1beta1"}, Retired: []string{"v1alpha1"}, Successor: "v1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			crd.Annotations = map[string]string{migrationAnnotation: c.saved}
			crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Storage: true}}
			crd.Status.StoredVersions = c.stored

			NewWithT(t).Expect(*wanted.resume(crd)).To(Equal(c.want))
		})
	}
}
