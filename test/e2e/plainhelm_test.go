package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/test/harness"
)

// packed is a chart as an archive for plain Helm.
type packed struct {
	*chart.Chart
	file string
}

// pack builds the chart of a release and writes it to a file.
func pack(ctx context.Context, dir string, wanted harness.Wanted) packed {
	GinkgoHelper()

	release, err := harness.Load(ctx, samples, wanted)
	Expect(err).NotTo(HaveOccurred())
	built, err := chartgen.Build(release.Bundle)
	Expect(err).NotTo(HaveOccurred())
	archive, err := built.Archive()
	Expect(err).NotTo(HaveOccurred())

	p := packed{built, filepath.Join(dir, built.Filename())}
	Expect(os.WriteFile(p.file, archive, 0o600)).To(Succeed())

	return p
}

func (p packed) namespace() string {
	return p.Metadata.Annotations[chartgen.AnnotationDefaultNamespace]
}

// Helm without an operator: docker's chart installs its own CRDs, those of aws are
// applied before, together with a custom resource.
var _ = Describe("Plain Helm", Ordered, func() {
	var (
		w                         *world
		docker, dockerBefore, aws packed
		cluster                   *unstructured.Unstructured
	)

	credentials := "variables.AWS_B64ENCODED_CREDENTIALS=" + harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"]

	helm := func(ctx context.Context, p packed, args ...string) string {
		GinkgoHelper()
		return w.run(ctx, "helm", append(args, "--namespace", p.namespace())...)
	}
	// available returns the number of pods of each Deployment of a chart, when all of them are
	// available.
	available := func(ctx context.Context, p packed) func(Gomega) map[string]int32 {
		return func(g Gomega) map[string]int32 {
			list := &appsv1.DeploymentList{}
			g.Expect(w.client.List(
				ctx,
				list,
				client.InNamespace(p.namespace()),
				client.MatchingLabels{"cluster.x-k8s.io/provider": p.Metadata.Name},
			)).
				To(Succeed())

			replicas := map[string]int32{}

			for _, d := range list.Items {
				g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
				g.Expect(d.Status.UpdatedReplicas).To(Equal(*d.Spec.Replicas))
				g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas))
				replicas[d.Name] = *d.Spec.Replicas
			}

			return replicas
		}
	}

	BeforeAll(func(ctx SpecContext) {
		w = newWorld()
		dir := GinkgoT().TempDir()
		docker = pack(ctx, dir, harness.Wanted{Label: "infrastructure-docker"})
		dockerBefore = pack(
			ctx,
			dir,
			harness.Wanted{Label: "infrastructure-docker", Version: "<" + docker.Metadata.Version},
		)
		aws = pack(ctx, dir, harness.Wanted{Label: "infrastructure-aws"})

		Expect(dockerBefore.file).NotTo(Equal(docker.file))
	})

	It("reports the missing variable", func(ctx SpecContext) {
		out, err := w.bed.Command(
			ctx, "helm", "install", aws.Metadata.Name, aws.file, "--namespace", aws.namespace(), "--create-namespace",
		).CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("'/variables': missing property 'AWS_B64ENCODED_CREDENTIALS'"))
	})

	It("installs the providers, which become healthy", func(ctx SpecContext) {
		crds := filepath.Join(GinkgoT().TempDir(), "crds.yaml")
		Expect(os.WriteFile(crds, []byte(w.run(ctx, "helm", "show", "crds", aws.file)), 0o600)).To(Succeed())
		w.run(ctx, "kubectl", "apply", "--server-side", "-f", crds)
		w.run(ctx, "kubectl", "wait", "--for", "condition=Established", "-f", crds)
		cluster = createAWSCluster(ctx, w)

		notes := helm(ctx, aws, "install", aws.Metadata.Name, aws.file, "--create-namespace", "--set", credentials)
		Expect(notes).To(
			And(
				ContainSubstring("infrastructure-aws "+aws.Metadata.AppVersion+
					" has been deployed to the namespace "+aws.namespace()),
				Not(ContainSubstring("WARNING")),
			),
		)
		helm(ctx, dockerBefore, "install", docker.Metadata.Name, dockerBefore.file, "--create-namespace")
		Eventually(available(ctx, aws)).Should(HaveLen(1))
		Eventually(available(ctx, dockerBefore)).Should(HaveLen(1))
	})

	It("upgrades the providers, and rolls back", func(ctx SpecContext) {
		manager := slices.Collect(maps.Keys(available(ctx, aws)(Default)))[0]
		helm(
			ctx, aws, "upgrade", aws.Metadata.Name, aws.file, "--reuse-values", "--set",
			fmt.Sprintf("deployments.%s.replicas=2", manager),
		)
		Eventually(available(ctx, aws)).Should(HaveKeyWithValue(manager, int32(2)))
		helm(ctx, aws, "rollback", aws.Metadata.Name, "1")
		Eventually(available(ctx, aws)).Should(HaveKeyWithValue(manager, int32(1)))

		helm(ctx, docker, "upgrade", docker.Metadata.Name, docker.file)
		Eventually(available(ctx, docker)).Should(HaveLen(1))
		helm(ctx, docker, "rollback", docker.Metadata.Name, "1")
		Eventually(available(ctx, docker)).Should(HaveLen(1))
		Expect(w.helm(ctx, "helm", "list", "-A")).To(ConsistOf(
			And(HaveField("Name", aws.Metadata.Name), HaveField("Status", "deployed")),
			And(
				HaveField("Name", docker.Metadata.Name),
				HaveField("Status", "deployed"),
				HaveField("Chart", dockerBefore.Metadata.Name+"-"+dockerBefore.Metadata.Version),
			),
		))
	})

	It("uninstalls the providers, and keeps CRDs and custom resources", func(ctx SpecContext) {
		before := w.crds(ctx)
		helm(ctx, aws, "uninstall", aws.Metadata.Name)
		helm(ctx, docker, "uninstall", docker.Metadata.Name)
		Eventually(available(ctx, aws)).Should(BeEmpty())
		Expect(w.crds(ctx)).To(Equal(before))
		Expect(before).To(HaveKey("dockerclusters.infrastructure.cluster.x-k8s.io"))

		live := cluster.DeepCopy()
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(cluster), live)).To(Succeed())
		Expect(live.GetUID()).To(Equal(cluster.GetUID()))
		Expect(live.GetDeletionTimestamp()).To(BeNil())
	})

	It("warns if conversion webhooks are in another namespace", func(ctx SpecContext) {
		Expect(w.run(ctx, "helm", "install", docker.Metadata.Name, docker.file, "--namespace", "elsewhere",
			"--create-namespace")).To(ContainSubstring(
			"The chart's CRDs call the conversion webhook in the namespace capd-system, not in elsewhere"))
	})
})

// createAWSCluster creates a custom resource of aws in its storage version, since nothing converts
// it here.
func createAWSCluster(ctx context.Context, w *world) *unstructured.Unstructured {
	GinkgoHelper()

	crd := &apiextensionsv1.CustomResourceDefinition{}
	Expect(w.client.Get(ctx, client.ObjectKey{Name: "awsclusters.infrastructure.cluster.x-k8s.io"}, crd)).To(Succeed())
	stored := slices.IndexFunc(
		crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage },
	)
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.Spec.Group + "/" + crd.Spec.Versions[stored].Name, "kind": crd.Spec.Names.Kind,
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": "mine"},
		"spec":     map[string]any{"region": "eu-central-1"},
	}}
	Expect(w.client.Create(ctx, cluster)).To(Succeed())

	return cluster
}

// crds returns the UIDs and generations of the CRDs in the cluster, by name.
func (w *world) crds(ctx context.Context) map[string]string {
	GinkgoHelper()

	list := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(w.client.List(ctx, list)).To(Succeed())

	all := map[string]string{}
	for _, crd := range list.Items {
		all[crd.Name] = fmt.Sprintf("%s %d", crd.UID, crd.Generation)
	}

	return all
}
