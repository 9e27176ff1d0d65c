package cli

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestMatch(t *testing.T) {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	all := []v1alpha2.Provider{
		&v1alpha2.CoreProvider{ObjectMeta: meta("core", "cluster-api")},
		&v1alpha2.BootstrapProvider{ObjectMeta: meta("kb", "kubeadm")},
		&v1alpha2.ControlPlaneProvider{ObjectMeta: meta("kcp", "kubeadm")},
		&v1alpha2.InfrastructureProvider{ObjectMeta: meta("a", "aws")},
		&v1alpha2.InfrastructureProvider{ObjectMeta: meta("b", "aws")},
		&v1alpha2.InfrastructureProvider{ObjectMeta: meta("d", "docker")},
	}

	for argument, want := range map[string][]string{
		"docker":                         {"InfrastructureProvider d/docker"},
		"infrastructure-docker":          {"InfrastructureProvider d/docker"},
		"infrastructureprovider/docker":  {"InfrastructureProvider d/docker"},
		"InfrastructureProviders/docker": {"InfrastructureProvider d/docker"},
		"infrastructure/docker":          {"InfrastructureProvider d/docker"},
		"control-plane/kubeadm":          {"ControlPlaneProvider kcp/kubeadm"},
		"cluster-api":                    {"CoreProvider core/cluster-api"},
		"kubeadm":                        {"BootstrapProvider kb/kubeadm", "ControlPlaneProvider kcp/kubeadm"},
		"infrastructure-aws":             {"InfrastructureProvider a/aws", "InfrastructureProvider b/aws"},
	} {
		t.Run(argument, func(t *testing.T) {
			g := NewWithT(t)
			identity := func(p v1alpha2.Provider) (v1alpha2.ProviderType, string) { return p.ProviderType(), p.GetName() }

			var got []string
			for _, p := range named(all, argument, identity) {
				got = append(got, v1alpha2.FullName(p))
			}

			g.Expect(got).To(Equal(want))
		})
	}

	_, err := FindOne(all[:2], "azure")
	NewWithT(t).Expect(err).
		To(MatchError("provider azure not found; the existing ones are: cluster-api (CoreProvider core/cluster-api), " +
			"bootstrap-kubeadm (BootstrapProvider kb/kubeadm)"))
	_, err = FindOne(slices.Repeat(all, 10), "azure")
	NewWithT(t).Expect(err).To(MatchError(HaveSuffix("infrastructure-aws (InfrastructureProvider a/aws) and 50 more")))
	_, err = FindOne(all, "addon/docker")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("provider addon/docker not found")))
	_, err = FindOne(all, "infrastructur-docker")
	NewWithT(t).Expect(err).To(MatchError("provider infrastructur-docker not found; did you mean infrastructure-docker?"))
	_, err = FindOne(all, "infrastructure-gcp")
	NewWithT(t).Expect(err).To(MatchError(HavePrefix("provider infrastructure-gcp not found; the existing ones are: ")))
	_, err = FindOne(all, "infrastructure-dokcer")
	NewWithT(t).Expect(err).To(MatchError("provider infrastructure-dokcer not found; did you mean infrastructure-docker?"))
	_, err = FindOne(all, "kubeadm")
	NewWithT(t).Expect(err).To(MatchError("kubeadm is ambiguous: bootstrap-kubeadm (BootstrapProvider kb/kubeadm), " +
		"control-plane-kubeadm (ControlPlaneProvider kcp/kubeadm); use the kind or --namespace to select one"))
	_, err = FindOne(nil, "azure")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("there are no providers")))
}

// TestProvidersAreSortedByName: the API server sorts them by namespace.
func TestProvidersAreSortedByName(t *testing.T) {
	g := NewWithT(t)

	answer := func(w http.ResponseWriter, r *http.Request) {
		list := &v1alpha2.InfrastructureProviderList{}
		if strings.HasSuffix(r.URL.Path, "/infrastructureproviders") {
			list.Items = []v1alpha2.InfrastructureProvider{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "vsphere"}},
				{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "aws"}},
				{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "aws"}},
			}
		}

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}

	all, err := answering(t, answer).Providers(t.Context())
	g.Expect(err).NotTo(HaveOccurred())

	var names []string
	for _, p := range all {
		names = append(names, v1alpha2.FullName(p))
	}

	g.Expect(names).To(Equal([]string{
		"InfrastructureProvider b/aws", "InfrastructureProvider c/aws", "InfrastructureProvider a/vsphere",
	}))
}
