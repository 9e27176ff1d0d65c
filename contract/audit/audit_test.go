package audit_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/contract/audit"
	"github.com/capstan-project/capstan/contract/audit/audittest"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// options check all providers.
var options = audit.Options{DeletionTimeout: audit.DefaultDeletionTimeout}

// healthy returns the objects of the sample, with UIDs.
func healthy(t *testing.T) []*unstructured.Unstructured {
	t.Helper()

	all, err := audittest.Healthy()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	uid := func(kind, name string) types.UID { return types.UID(kind + "-" + name) }
	for _, o := range all {
		o.SetUID(uid(o.GetKind(), o.GetName()))
		audittest.SetOwners(o, uid)
	}

	return all
}

// snapshotOf returns the snapshot of a cluster with these objects.
func snapshotOf(t *testing.T, all []*unstructured.Unstructured) *audit.Snapshot {
	t.Helper()

	s := &audit.Snapshot{Time: time.Now()}
	convert := runtime.DefaultUnstructuredConverter

	for _, o := range all {
		var err error

		switch o.GetKind() {
		case "CustomResourceDefinition":
			crd := &apiextensionsv1.CustomResourceDefinition{}
			err = convert.FromUnstructured(o.Object, crd)
			s.CRDs = append(s.CRDs, crd)
		case "Secret":
			secret := &corev1.Secret{}

			var data []byte
			if data, err = json.Marshal(o.Object); err == nil {
				err = json.Unmarshal(data, secret)
			}

			s.Secrets = append(s.Secrets, audit.NewSecret(secret))
		case "ValidatingWebhookConfiguration":
			s.Webhooks = append(s.Webhooks, o)
		default:
			audit.Trim(o)
			s.Objects = append(s.Objects, o)
		}

		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}

	return s
}

// plant makes a change to the object of a fault.
func plant(t *testing.T, all []*unstructured.Unstructured, f audittest.Fault) []*unstructured.Unstructured {
	t.Helper()

	kind, name := f.Target()
	i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name
	})
	NewWithT(t).Expect(i).To(BeNumerically(">=", 0), "%s %s", kind, name)

	switch {
	case f.Edit != nil:
		f.Edit(all[i].Object)
	case f.Blocked:
		since := metav1.NewTime(time.Now().Add(-2 * audit.DefaultDeletionTimeout))
		all[i].SetDeletionTimestamp(&since)
		all[i].SetFinalizers([]string{"example.com/disk"})
	default:
		all = slices.Delete(all, i, i+1)
	}

	return all
}

// place returns where a finding is, and its rule.
func place(f contract.Finding) string { return f.Rule + " " + f.Kind + " " + f.Object }

func TestHealthy(t *testing.T) {
	NewWithT(t).Expect(audit.Check(snapshotOf(t, healthy(t)), options)).To(BeEmpty())
}

// TestRealProviders: the CRDs of real providers have no faults besides those of the sample.
func TestRealProviders(t *testing.T) {
	g := NewWithT(t)
	folder := testproviders.Folder(t)

	certificate, err := audittest.Certificate(time.Hour)
	g.Expect(err).NotTo(HaveOccurred())

	releases, err := filepath.Glob(filepath.Join(folder, "*", "v*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(releases).NotTo(BeEmpty())

	for _, folderOfRelease := range releases {
		label, version := filepath.Base(filepath.Dir(folderOfRelease)), filepath.Base(folderOfRelease)
		release, err := harness.Load(t.Context(), folder, harness.Wanted{Label: label, Version: version})
		g.Expect(err).NotTo(HaveOccurred())
		crds, err := harness.CRDs(release.Bundle.Components)
		g.Expect(err).NotTo(HaveOccurred())

		s := snapshotOf(t, healthy(t))

		for _, crd := range crds {
			inSample := func(other *apiextensionsv1.CustomResourceDefinition) bool { return other.Name == crd.Name }
			if !slices.ContainsFunc(s.CRDs, inSample) {
				s.CRDs = append(s.CRDs, served(crd, label, certificate))
			}
		}

		g.Expect(audit.Check(s, options)).To(BeEmpty(), label+" "+version)
	}
}

// served returns a CRD of a provider as it is in a cluster.
func served(
	crd *apiextensionsv1.CustomResourceDefinition, label string, certificate []byte,
) *apiextensionsv1.CustomResourceDefinition {
	metav1.SetMetaDataLabel(&crd.ObjectMeta, "clusterctl.cluster.x-k8s.io", "")
	metav1.SetMetaDataLabel(&crd.ObjectMeta, "cluster.x-k8s.io/provider", label)

	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil {
		c.Webhook.ClientConfig.CABundle = certificate // as cert-manager does
	}

	for _, condition := range []apiextensionsv1.CustomResourceDefinitionConditionType{
		apiextensionsv1.Established, apiextensionsv1.NamesAccepted,
	} {
		crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: condition, Status: apiextensionsv1.ConditionTrue,
		})
	}

	for _, version := range crd.Spec.Versions {
		if version.Storage {
			crd.Status.StoredVersions = []string{version.Name}
		}
	}

	return crd
}

func TestFaults(t *testing.T) {
	found := map[string]bool{"coverage/complete": true, "coverage/managed-types": true} // see TestUnread, TestManagedTypes

	for i, f := range audittest.Faults() {
		found[f.Rule] = true
		t.Run(fmt.Sprintf("%d %s %s %s", i, f.Rule, f.Kind, f.Object), func(t *testing.T) {
			g := NewWithT(t)
			findings := audit.Check(snapshotOf(t, plant(t, healthy(t), f)), options)
			g.Expect(findings).To(HaveLen(1))
			g.Expect(place(findings[0])).To(Equal(f.Rule + " " + f.Kind + " " + f.Object))
			g.Expect(findings[0].Message).NotTo(ContainSubstring("secret-token"))
		})
	}

	for _, rule := range audit.Rules() {
		NewWithT(t).Expect(found).To(HaveKey(rule.Name))
	}
}

// TestProviders: findings belong to the providers that are responsible.
func TestProviders(t *testing.T) {
	for _, f := range audittest.Faults() {
		snapshot := snapshotOf(t, plant(t, healthy(t), f))

		var responsible []string

		for _, provider := range []string{
			audittest.Core, audittest.Infrastructure, audittest.ControlPlane, audittest.Bootstrap, audittest.Legacy,
		} {
			only := options
			only.Providers = []string{provider}

			if len(audit.Check(snapshot, only)) > 0 {
				responsible = append(responsible, provider)
			}
		}

		NewWithT(t).Expect(responsible).NotTo(BeEmpty(), f.Rule)

		if f.Kind != "Cluster" && f.Kind != "Machine" && f.Kind != "CustomResourceDefinition" {
			NewWithT(t).Expect(responsible).To(HaveLen(1), f.Rule)
		}
	}
}

// TestUnread: what was not read is reported, and nothing that depends on it is.
func TestUnread(t *testing.T) {
	for name, lost := range map[string]string{
		"machines.cluster.x-k8s.io":                          "Machine",
		"clusters.cluster.x-k8s.io":                          "Cluster",
		"examplemachines.infrastructure.cluster.x-k8s.io":    "ExampleMachine",
		"exampleclusters.infrastructure.cluster.x-k8s.io":    "ExampleCluster",
		"examplecontrolplanes.controlplane.cluster.x-k8s.io": "ExampleControlPlane",
		"exampleconfigs.bootstrap.cluster.x-k8s.io":          "ExampleConfig",
		audit.SecretsName:                                    "Secret",
		audit.WebhooksName:                                   "ValidatingWebhookConfiguration",
	} {
		g := NewWithT(t)
		all := slices.DeleteFunc(healthy(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == lost })
		snapshot := snapshotOf(t, all)
		snapshot.Unread = []audit.Unread{{Name: name, Reason: "forbidden"}}

		findings := audit.Check(snapshot, options)
		g.Expect(findings).To(HaveLen(1), lost)
		g.Expect(findings[0].Rule).To(Equal("coverage/complete"))
		g.Expect(findings[0].Level).To(Equal(contract.Info))
		g.Expect(findings[0].Object).To(Equal(name))
		g.Expect(findings[0].Message).To(Equal("is not checked completely: forbidden"))
	}
}

// TestManagedTypes: the types that a provider manages besides its own are named, and Cluster API's contracts do not
// apply to them.
func TestManagedTypes(t *testing.T) {
	g := NewWithT(t)
	snapshot := snapshotOf(t, healthy(t))

	snapshot.CRDs = append(snapshot.CRDs,
		managedCRD("ResourceGroup", apiextensionsv1.ClusterScoped),
		managedCRD("VirtualNetwork", apiextensionsv1.NamespaceScoped),
	)
	snapshot.Managed = map[string]string{}

	for _, crd := range snapshot.CRDs[len(snapshot.CRDs)-2:] {
		snapshot.Managed[crd.Name] = audittest.Infrastructure

		o := &unstructured.Unstructured{}
		o.SetAPIVersion(crd.Spec.Group + "/v1")
		o.SetKind(crd.Spec.Names.Kind)
		o.SetName("mine")
		o.SetUID(types.UID(crd.Name))
		snapshot.Objects = append(snapshot.Objects, o)
	}

	all := audit.Check(snapshot, options)
	g.Expect(all).To(HaveLen(2))
	g.Expect(place(all[0])).To(Equal("coverage/managed-types CustomResourceDefinition resourcegroups.example.azure.com"))
	g.Expect(all[0].Level).To(Equal(contract.Info))
	g.Expect(all[0].Message).To(Equal("is not part of infrastructure-example, which manages its objects; there are 1"))

	only := options
	only.Providers = []string{audittest.Bootstrap}
	g.Expect(audit.Check(snapshot, only)).To(BeEmpty())

	// An object that is not deleted in time is a finding for them as well.
	since := metav1.NewTime(time.Now().Add(-2 * audit.DefaultDeletionTimeout))
	stuck := snapshot.Objects[len(snapshot.Objects)-1]
	stuck.SetDeletionTimestamp(&since)
	stuck.SetFinalizers([]string{"example.com/network"})
	g.Expect(audit.Check(snapshot, options)).To(ContainElement(HaveField("Rule", "status/deletion")))

	snapshot.Unread = []audit.Unread{{Name: "virtualnetworks.example.azure.com", Reason: "forbidden"}}
	g.Expect(audit.Check(snapshot, options)).To(ContainElement(HaveField("Message", HaveSuffix("there are at least 1"))))
}

// managedCRD returns a CRD without labels.
func managedCRD(kind string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"

	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.azure.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.azure.com",
			Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
			}},
		},
	}
}

// TestManyFindings: what is wrong with many objects is reported for some of them.
func TestManyFindings(t *testing.T) {
	g := NewWithT(t)
	all := healthy(t)

	for i := range 250 {
		disk := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "ExampleDisk",
		}}
		disk.SetName(fmt.Sprint("disk-", i))
		disk.SetNamespace("default")
		disk.SetUID(types.UID(disk.GetName()))
		all = append(all, disk)
	}

	findings := audit.Check(snapshotOf(t, all), options)
	g.Expect(findings).To(HaveLen(100))
	g.Expect(slices.ContainsFunc(findings, func(f contract.Finding) bool {
		return strings.HasSuffix(f.Message, "; there are 150 more findings of this rule")
	})).To(BeTrue())
}

// TestOwnerCycle: objects that own each other are not linked to a Cluster.
func TestOwnerCycle(t *testing.T) {
	g := NewWithT(t)
	all := plant(t, healthy(t), audittest.Fault{Kind: "ExampleDisk", Object: "one-a", Edit: func(fields map[string]any) {
		g.Expect(unstructured.SetNestedSlice(fields, []any{map[string]any{
			"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "ExampleDisk", "name": "one-a",
			"uid": "ExampleDisk-one-a",
		}}, "metadata", "ownerReferences")).To(Succeed())
	}})

	findings := audit.Check(snapshotOf(t, all), options)
	g.Expect(findings).To(HaveLen(1))
	g.Expect(findings[0].Rule).To(Equal("owners/chain"))
}

// TestHostileValues: values of any type and content are not trusted.
func TestHostileValues(t *testing.T) {
	g := NewWithT(t)
	all := healthy(t)

	for _, o := range all {
		if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Secret" {
			continue
		}

		o.Object["spec"] = []any{"\x1b[31m"}
		o.Object["status"] = map[string]any{"conditions": []any{"x", map[string]any{"type": 1}, nil}, "ready": "\x1b[31m"}
	}

	all = plant(t, all, audittest.Fault{Kind: "ExampleDisk", Object: "one-a", Edit: func(fields map[string]any) {
		fields["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "\x1b[31m" + strings.Repeat("é", 1000), "status": "True"},
			map[string]any{"type": "\x1b[31m" + strings.Repeat("é", 1000), "status": "True"},
		}}
	}})

	for _, f := range audit.Check(snapshotOf(t, all), options) {
		g.Expect(f.Message).NotTo(ContainSubstring("\x1b"))
		g.Expect(len(f.Message)).To(BeNumerically("<", 300))
	}
}

// TestRules: the texts of every rule are complete sentences.
func TestRules(t *testing.T) {
	names := map[string]bool{}

	for _, rule := range audit.Rules() {
		g := NewWithT(t)
		g.Expect(names).NotTo(HaveKey(rule.Name))
		names[rule.Name] = true
		g.Expect(rule.Name).To(MatchRegexp(`^[a-z-]+/[a-z-]+$`))
		g.Expect(rule.Contract).To(HavePrefix("https://"))

		for _, sentence := range []string{rule.Requirement, rule.Why, rule.Remedy} {
			g.Expect(sentence).To(MatchRegexp("^[A-Z`].*\\.$"), rule.Name)
		}
	}
}
