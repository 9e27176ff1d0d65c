package provider

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// TestCorrectionWaitsForRewrites checks that a CRD which another program has changed is not called corrected while the
// objects that it has kept an old version for are being rewritten.
func TestCorrectionWaitsForRewrites(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	live, config := connect(t), apiServer.Get(t).Config()
	writer, err := metadata.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := dynamic.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())

	applier := crds.NewApplier(crds.Clients{
		Client: live, APIReader: live, Metadata: writer, Objects: trial.ClusterObjects{Client: objects},
	})
	planFor := func(version string) *crds.Plan {
		planned, err := applier.Plan(ctx, crds.Request{
			Label: "infrastructure-aws", Namespace: "capa-system", Version: version,
			Files: []chart.File{{Name: "crds/rewrites.example.com.yaml", Data: fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rewrites.example.com, labels: {cluster.x-k8s.io/provider: infrastructure-aws}}
spec:
  group: example.com
  names: {kind: Rewrite, listKind: RewriteList, plural: rewrites, singular: rewrite}
  scope: Cluster
  versions:
  - {name: %s, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`, version)}},
		})
		g.Expect(err).NotTo(HaveOccurred())

		return planned
	}

	g.Expect(applier.Apply(ctx, planFor("v1"))).To(HaveLen(1))
	g.Eventually(func() error {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("example.com/v1")
		object.SetKind("Rewrite")
		object.SetName("old")

		return live.Create(ctx, object)
	}).Should(Succeed())

	g.Expect(applier.Apply(ctx, planFor("v2"))).To(HaveLen(1))

	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "rewrites.example.com"
	g.Expect(bedtest.Edit(ctx, live, crd, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "changed"
	}, client.FieldOwner("kubectl-edit"))).To(Succeed())
	g.Expect(crd.Status.StoredVersions).To(Equal([]string{"v1", "v2"}))

	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.target = &clusters.Target{CRDs: applier}

	planned := planFor("v2")
	g.Expect(planned.Drifted).To(HaveLen(1))

	result := resultOf(r.correctCRDs(ctx, planned))
	g.Expect(result.Outcome).To(Equal(Waiting))
	g.Expect(result.Reason).To(Equal(v1alpha2.MigratingCRDsReason))
	g.Expect(r.migration.message).To(Equal("migrated 1 of 1 objects of rewrites.example.com"))
}

// TestInstalledChart checks that no chart is looked for whose CRDs are not known to be what is installed.
func TestInstalledChart(t *testing.T) {
	for name, change := range map[string]func(*run){
		"nothing is installed":          func(r *run) { r.installed.Record = nil },
		"a revision that has failed":    func(r *run) { r.installed.Newest.Status = v1alpha2.RevisionFailed },
		"a revision of another program": func(r *run) { r.installed.Newest.ChartDigest = "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.installed.Newest.ChartDigest = "digest"
			change(r)

			NewWithT(t).Expect(r.installedChart(t.Context())).To(BeNil())
		})
	}
}
