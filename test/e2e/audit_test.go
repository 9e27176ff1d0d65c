package e2e

import (
	"encoding/json"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/contract/audit/audittest"
)

var _ = Describe("The audit of a running provider", Ordered, ContinueOnFailure, func() {
	var (
		w      *world
		cli    commandLine
		sample sampleObjects
	)

	// report runs the audit and returns rule, kind and name of each finding. The exit code is 2 if one of them
	// is an error.
	report := func(ctx SpecContext, args ...string) []string {
		GinkgoHelper()

		out, failure, code := cli.run(ctx, slices.Concat([]string{"audit", "-o", "json", "--deletion-timeout=0s"}, args)...)
		Expect(out + failure).NotTo(Or(
			ContainSubstring("secret-token"), ContainSubstring("c2VjcmV0LXRva2Vu"), ContainSubstring("CERTIFICATE")))

		var result struct {
			Errors   int
			Findings []contract.Finding
		}
		Expect(json.Unmarshal([]byte(out), &result)).To(Succeed(), "%s\n%s", out, failure)
		Expect(code).To(Equal(2*min(result.Errors, 1)), failure)

		found := make([]string, 0, len(result.Findings))
		for _, f := range result.Findings {
			found = append(found, f.Rule+" "+f.Kind+" "+f.Object)
		}

		return found
	}

	BeforeAll(func(ctx SpecContext) {
		w = newWorld() // without an operator, which would correct the CRDs
		cli = newCommandLine(w)
		sample = sampleObjects{w, map[string]*unstructured.Unstructured{}}
		sample.create(ctx)

		for _, name := range []string{"example", "legacy"} {
			Expect(w.client.Create(ctx, &v1alpha2.InfrastructureProvider{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			})).To(Succeed())
		}
	})

	It("finds nothing in a healthy cluster, and changes nothing", func(ctx SpecContext) {
		Expect(report(ctx)).To(BeEmpty())
		Expect(cli.succeed(ctx, "audit")).To(Equal("no findings\n"))
		Expect(cli.succeed(ctx, "audit", "infrastructure-example", "--fail-on", "warning")).To(Equal("no findings\n"))
		Expect(cli.writes()).To(BeZero())
	})

	// The tests of package audit plant all faults; here it matters that every kind of object is read.
	It("finds an object of each kind that was changed, deleted or kept from its deletion", func(ctx SpecContext) {
		planted := map[string]bool{}

		for _, fault := range audittest.Faults() {
			kind, _ := fault.Target()

			way := fmt.Sprintf("%s changed=%t blocked=%t", kind, fault.Edit != nil, fault.Blocked)
			if fault.Volatile || planted[way] {
				continue
			}

			planted[way] = true

			By(way)

			saved := sample.plant(ctx, fault)
			Expect(report(ctx)).To(HaveExactElements(fault.Rule + " " + fault.Kind + " " + fault.Object))
			sample.restore(ctx, fault, saved) // the next one would find what is still wrong
		}
	})

	It("checks only the providers that are named", func(ctx SpecContext) {
		i := slices.IndexFunc(audittest.Faults(), func(f audittest.Fault) bool { return f.Kind == "LegacyMachine" })
		fault := audittest.Faults()[i]
		saved := sample.plant(ctx, fault)
		Expect(report(ctx, "infrastructure-example")).To(BeEmpty())
		Expect(report(ctx, "infrastructure-legacy")).To(HaveLen(1))
		Expect(report(ctx, "--namespace", "default")).To(HaveLen(1))
		Expect(report(ctx, "--namespace", "kube-system")).To(BeEmpty())
		sample.restore(ctx, fault, saved)
		cli.fail(ctx, "audit", "missing").To(ContainSubstring("provider missing not found"))
	})

	It("does not take CRDs for a provider's that its manager has created with its label", func(ctx SpecContext) {
		created := newTiny("created", "v1.0.0").definition(map[string]string{
			v1alpha2.ClusterctlProviderLabel: "infrastructure-example",
		})
		created.Name, created.Spec.Group = created.Spec.Names.Plural+".example.azure.com", "example.azure.com"
		Expect(w.client.Create(ctx, created)).To(Succeed())
		Expect(report(ctx)).To(ContainElement(HaveSuffix(created.Name)), "no CRD is known to be the provider's")

		own := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(w.client.List(ctx, own, client.MatchingLabels(created.Labels))).To(Succeed())

		for i := range own.Items {
			if d := &own.Items[i]; d.Name != created.Name {
				w.editDefinition(ctx, d.Name, func(d *apiextensionsv1.CustomResourceDefinition) {
					metav1.SetMetaDataAnnotation(&d.ObjectMeta, v1alpha2.Prefix+"/crd-digest", "0")
				})
			}
		}

		Expect(report(ctx)).To(BeEmpty())
		Expect(w.client.Delete(ctx, created)).To(Succeed())
	})

	It("shows the types that a provider manages besides its own", func(ctx SpecContext) {
		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "example"}}
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().AdditionalManagedTypes = []v1alpha2.ManagedType{{Group: "cert-manager.io", Kind: "ClusterIssuer"}}
		})

		const found = "coverage/managed-types CustomResourceDefinition clusterissuers.cert-manager.io"

		Expect(report(ctx)).To(HaveExactElements(found))
		Expect(report(ctx, "infrastructure-example")).To(HaveExactElements(found))
		Expect(report(ctx, "infrastructure-legacy")).To(BeEmpty())

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().AdditionalManagedTypes = nil })
	})

	It("reports what the user may not read, and what exceeds the limits", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "auditor"},
			Rules: []rbacv1.PolicyRule{
				{
					APIGroups: []string{"apiextensions.k8s.io"},
					Resources: []string{"customresourcedefinitions"},
					Verbs:     []string{"list"},
				},
				{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"list"}},
			},
		}
		Expect(w.client.Create(ctx, role)).To(Succeed())
		Expect(w.client.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "auditor"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "auditor"}},
		})).To(Succeed())

		Eventually(func() []string { return report(ctx, "--as", "auditor") }).Should(And(
			ContainElement("coverage/complete Secret secrets"),
			ContainElement("coverage/complete Provider providers"),
			ContainElement("coverage/complete CustomResourceDefinition exampledisks.infrastructure.cluster.x-k8s.io"),
			HaveEach(HavePrefix("coverage/complete ")),
			Not(ContainElement(HaveSuffix("clusters.cluster.x-k8s.io"))),
		))
		Expect(cli.succeed(ctx, "audit", "--as", "auditor")).To(ContainSubstring(
			`is not checked completely: secrets is forbidden: User "auditor" cannot list resource "secrets"`))
		cli.fail(ctx, "audit", "--as", "visitor").To(HavePrefix("Error: list CustomResourceDefinitions: "))

		Expect(cli.succeed(ctx, "audit", "--limit", "1")).To(And(
			ContainSubstring("there are more than 1 objects"), HaveSuffix(" infos\n")))
		cli.fail(ctx, "audit", "--limit", "0").To(ContainSubstring("--limit"))
	})
})

// sampleObjects are the objects of package audittest in a world.
type sampleObjects struct {
	w *world
	// created are the objects by kind and name.
	created map[string]*unstructured.Unstructured
}

// create creates the healthy sample.
func (s sampleObjects) create(ctx SpecContext) {
	GinkgoHelper()

	all, err := audittest.Healthy()
	Expect(err).NotTo(HaveOccurred())

	for _, o := range all {
		audittest.SetOwners(o, func(kind, name string) types.UID { return s.created[kind+" "+name].GetUID() })
		s.created[o.GetKind()+" "+o.GetName()] = o

		wanted := o.DeepCopy()

		// The CRD may not be served yet.
		Eventually(func() error { return s.w.client.Create(ctx, o) }).Should(Succeed())
		s.write(ctx, wanted)
	}
}

// write sets the fields and the status of an object that exists.
func (s sampleObjects) write(ctx SpecContext, wanted *unstructured.Unstructured) {
	GinkgoHelper()

	Eventually(func() error {
		live := wanted.DeepCopy()
		if err := s.w.client.Get(ctx, client.ObjectKeyFromObject(wanted), live); err != nil {
			return err
		}

		o := wanted.DeepCopy()
		o.SetResourceVersion(live.GetResourceVersion())
		o.SetUID(live.GetUID())

		if err := s.w.client.Update(ctx, o); err != nil || wanted.Object["status"] == nil {
			return err
		}

		o.Object["status"] = wanted.Object["status"]
		if wanted.GetKind() == "CustomResourceDefinition" {
			// The other fields belong to the API server.
			o.Object["status"] = live.Object["status"]
			versions, _, _ := unstructured.NestedSlice(wanted.Object, "status", "storedVersions")
			Expect(unstructured.SetNestedSlice(o.Object, versions, "status", "storedVersions")).To(Succeed())
		}

		return s.w.client.Status().Update(ctx, o)
	}).Should(Succeed())
}

// plant plants a fault, and returns the object as it was before.
func (s sampleObjects) plant(ctx SpecContext, fault audittest.Fault) *unstructured.Unstructured {
	GinkgoHelper()

	kind, name := fault.Target()
	o := s.created[kind+" "+name].DeepCopy()
	Expect(s.w.client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	saved := o.DeepCopy()

	switch {
	case fault.Blocked:
		o.SetFinalizers([]string{"example.com/disk"})
		Expect(s.w.client.Update(ctx, o)).To(Succeed())
		Expect(s.w.client.Delete(ctx, o)).To(Succeed())
	case fault.Edit == nil:
		Expect(s.w.client.Delete(ctx, o)).To(Succeed())
	default:
		fault.Edit(o.Object)
		s.replace(ctx, o)
	}

	return saved
}

// restore undoes a fault.
func (s sampleObjects) restore(ctx SpecContext, fault audittest.Fault, saved *unstructured.Unstructured) {
	GinkgoHelper()

	if fault.Blocked {
		o := saved.DeepCopy()
		Expect(s.w.client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		o.SetFinalizers(nil)
		Expect(s.w.client.Update(ctx, o)).To(Succeed())
	}

	s.replace(ctx, saved)
}

// replace changes an object, or creates it if it does not exist. The type of a Secret cannot be changed, so
// Secrets are always created again.
func (s sampleObjects) replace(ctx SpecContext, o *unstructured.Unstructured) {
	GinkgoHelper()

	if o.GetKind() == "Secret" {
		Expect(client.IgnoreNotFound(s.w.client.Delete(ctx, o))).To(Succeed())
	}

	err := s.w.client.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy())
	if apierrors.IsNotFound(err) {
		o = o.DeepCopy()
		o.SetResourceVersion("")
		o.SetUID("")
		Expect(s.w.client.Create(ctx, o)).To(Succeed())

		return
	}

	Expect(err).NotTo(HaveOccurred())
	s.write(ctx, o)
}
