package clusters

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

var aws = types.NamespacedName{Namespace: "capa", Name: "infrastructure-aws"}

// record returns the record of a revision of Capstan's in a namespace.
func record(namespace, status string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sh.helm.release.v1." + aws.Name + ".v1",
			Labels: map[string]string{
				"owner": "helm", "name": aws.Name, storage.RevisionLabel: "1", "version": "1", "status": status,
			}},
	}
}

// targetWith returns a target in a cluster with records, whose namespace is watched unless the operator watches others
// only.
func targetWith(t *testing.T, records []runtime.Object, only ...string) *Target {
	scheme := metadatafake.NewTestScheme()
	NewWithT(t).Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())

	metadata := metadatafake.NewSimpleMetadataClient(scheme, records...)
	cluster := &Cluster{clients: clients{metadata: metadata}, Watches: namespaces.New(metadata, only)}

	for _, namespace := range only {
		if cluster.connection.Namespaces == nil {
			cluster.connection.Namespaces = map[string]cache.Config{}
		}

		cluster.connection.Namespaces[namespace] = cache.Config{}
	}

	return &Target{cluster: cluster}
}

// watch watches the namespace of the release.
func watch(t *testing.T, target *Target) {
	go func() { _ = target.cluster.Watches.Start(t.Context()) }()

	target.cluster.Watches.Follow("aws", aws.Namespace)
	NewWithT(t).Eventually(func() bool {
		_, known := target.cluster.Watches.Records(aws)
		return known
	}).Should(BeTrue())
}

func TestMayHaveRelease(t *testing.T) {
	g := NewWithT(t)

	target := targetWith(t, nil)
	g.Expect(target.MayHaveRelease(t.Context(), aws)).To(BeTrue(), "the namespace is not watched yet")
	g.Expect(target.HasRelease(t.Context(), aws)).To(BeFalse())

	watch(t, target)
	g.Expect(target.MayHaveRelease(t.Context(), aws)).To(BeFalse())

	target = targetWith(t, []runtime.Object{record("capa", "deployed")})
	watch(t, target)
	g.Expect(target.MayHaveRelease(t.Context(), aws)).To(BeTrue())
	g.Expect(target.HasRelease(t.Context(), aws)).To(BeTrue())
}

func TestIsInstalled(t *testing.T) {
	kept := record("capa", "uninstalled")
	kept.Name, kept.Labels["version"] = "sh.helm.release.v1."+aws.Name+".v2", "2"

	for name, test := range map[string]struct {
		records  []runtime.Object
		expected bool
	}{
		"no release":                       {},
		"one in another namespace":         {records: []runtime.Object{record("b", "deployed")}},
		"one that is deployed":             {records: []runtime.Object{record("capa", "deployed")}, expected: true},
		"one that has failed":              {records: []runtime.Object{record("capa", "failed")}, expected: true},
		"the history of one that was kept": {records: []runtime.Object{record("capa", "superseded"), kept}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			target := targetWith(t, test.records)
			g.Expect(target.cluster.isInstalled(t.Context(), aws)).To(Equal(test.expected), "the namespace is not watched yet")

			watch(t, target)
			g.Expect(target.cluster.isInstalled(t.Context(), aws)).To(Equal(test.expected))
		})
	}
}

func TestInstalledElsewhere(t *testing.T) {
	foreign := record("team", "deployed")
	delete(foreign.Labels, storage.RevisionLabel)

	other := record("team", "deployed")
	other.Labels["name"] = "infrastructure-other"

	type records = []runtime.Object

	for name, test := range map[string]struct {
		records  records
		only     string
		expected string
	}{
		"nowhere":                    {expected: ""},
		"in another namespace":       {records{record("b", "deployed")}, "", "b"},
		"in two other namespaces":    {records{record("b", "deployed"), record("a", "failed")}, "", "a"},
		"one namespace is ignored":   {records{record("ignored", "deployed"), record("b", "x")}, "", "b"},
		"only where it is ignored":   {records{record("ignored", "deployed")}, "", ""},
		"in the own namespace too":   {records{record("b", "deployed"), record("capa", "x")}, "", ""},
		"uninstalled by helm":        {records{record("b", "uninstalled")}, "", ""},
		"by another program":         {records{foreign}, "", ""},
		"another release":            {records{other}, "", ""},
		"where the operator watches": {records{record("capa-2", "deployed")}, "capa,capa-2", "capa-2"},
		"where it does not":          {records{record("b", "deployed")}, "capa,capa-2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var only []string
			if test.only != "" {
				only = strings.Split(test.only, ",")
			}

			target := targetWith(t, test.records, only...)
			watch(t, target)

			ignored := func(namespace string) bool { return namespace == "ignored" }
			g.Expect(target.InstalledElsewhere(t.Context(), aws, ignored)).To(Equal(test.expected))
		})
	}
}
