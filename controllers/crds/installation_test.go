package crds

import (
	"cmp"
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestCheckInstallation(t *testing.T) {
	for name, c := range map[string]struct {
		owner, adopter string
		label          string
		err            error
		want           string
	}{
		"the own one":                              {owner: "target/b"},
		"an earlier resource's":                    {owner: "target/a"},
		"one applied by an older version":          {},
		"another installed release's":              {owner: "installed/a", want: "Helm release installed/infrastructure-x"},
		"that of one that is uninstalled":          {owner: "left/a"},
		"another installed release's, handed over": {owner: "installed/a", adopter: "infrastructure-x"},
		"another provider's":                       {owner: "installed/a", label: "infrastructure-y"},
		"an unknown one":                           {owner: "installed/a", err: errors.New("timeout"), want: "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hasRelease := func(_ context.Context, release types.NamespacedName) (bool, error) {
				g.Expect(release.Name).To(Equal("infrastructure-x"))
				return release.Namespace == "installed", c.err
			}

			live := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{v1alpha2.ClusterctlProviderLabel: cmp.Or(c.label, "infrastructure-x")},
				Annotations: map[string]string{v1alpha2.AdoptCRDAnnotation: c.adopter},
			}}
			if c.owner != "" {
				live.Annotations[ownerAnnotation] = c.owner
			}

			r := Request{Label: "infrastructure-x", Release: "infrastructure-x", Namespace: "target", Resource: "b"}
			err := NewApplier(Clients{HasRelease: hasRelease}).checkInstallation(t.Context(), r, live)

			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}
