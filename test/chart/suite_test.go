// Package chart tests charts/capstan and config with helm and kubectl on a real control plane, and checks that the
// operator needs no more permissions than they grant.
package chart

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/bed/tools"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/harness/suite"
	"github.com/capstan-project/capstan/test/testproviders"
)

const (
	// root is the module's root.
	root = "../.."
	// namespace and release of the operator.
	namespace = "capstan-system"
	release   = "capstan"
	// operatorUser is the operator's user name when it runs as the chart's ServiceAccount.
	operatorUser = "system:serviceaccount:" + namespace + ":" + release
)

// helm is the program that installs the chart.
var helm = tools.Helm()

var samples = filepath.Join(root, testproviders.Samples)

// Shared by all scenarios: a control plane, the operator's program, and the chart.
var (
	cluster *bed.Bed
	admin   client.Client
	program string
	// archive is the chart as it is published, and light is the same with CRDs without descriptions.
	archive, light string
)

func TestChart(t *testing.T) {
	suite.Suite{Name: "The operator's chart", Patience: 3 * time.Minute}.Run(t)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cluster = bedtest.Start(GinkgoT(), bed.Options{})

	var err error

	admin, err = harness.NewClient(cluster.Config())
	Expect(err).NotTo(HaveOccurred())

	dir := GinkgoT().TempDir()
	program, err = harness.Program(ctx, root, dir, harness.OperatorProgram)
	Expect(err).NotTo(HaveOccurred())
	run(ctx, "helm", "package", filepath.Join(root, "charts/capstan"), "--destination", dir)
	archives, err := filepath.Glob(filepath.Join(dir, "capstan-*.tgz"))
	Expect(err).NotTo(HaveOccurred())
	Expect(archives).To(HaveLen(1))
	archive = archives[0]
	light, err = harness.BareChart(root, dir)
	Expect(err).NotTo(HaveOccurred())
})

// try runs a program of the bed, as a user would, and returns its output.
func try(ctx context.Context, name string, args ...string) (string, error) {
	GinkgoHelper()

	out, err := cluster.Command(ctx, name, args...).CombinedOutput()

	return string(out), err
}

// run runs a program of the bed, as a user would, and returns its standard output.
func run(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	return bedtest.Output(GinkgoT(), cluster.Command(ctx, name, args...))
}

// yamlFile writes values or objects to a file.
func yamlFile(text string) string {
	GinkgoHelper()

	file := filepath.Join(GinkgoT().TempDir(), "values.yaml")
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())

	return file
}

// removeAll removes everything of the operator, including its CRDs. No operator runs any longer
// that could remove the finalizers.
func removeAll(ctx context.Context) {
	GinkgoHelper()

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		Expect(admin.List(ctx, list)).To(Succeed())

		for _, p := range list.GetItems() {
			p.SetFinalizers(nil)
			Expect(admin.Update(ctx, p)).To(Succeed())
		}
	}

	for _, definition := range definitions(ctx) {
		Expect(admin.Delete(ctx, &definition)).To(Succeed())
	}

	Eventually(func() []apiextensionsv1.CustomResourceDefinition { return definitions(ctx) }).Should(BeEmpty())

	secrets := &corev1.SecretList{}
	Expect(admin.List(ctx, secrets, client.MatchingLabels{"app.kubernetes.io/instance": release})).To(Succeed())

	for i := range secrets.Items {
		Expect(admin.Delete(ctx, &secrets.Items[i])).To(Succeed())
	}
}

// definitions returns the operator's CRDs in the cluster.
func definitions(ctx context.Context) []apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()

	list := &apiextensionsv1.CustomResourceDefinitionList{}
	Expect(admin.List(ctx, list)).To(Succeed())

	var own []apiextensionsv1.CustomResourceDefinition

	for _, definition := range list.Items {
		if definition.Spec.Group == "operator.cluster.x-k8s.io" {
			own = append(own, definition)
		}
	}

	return own
}

// operatorKubeconfig returns a kubeconfig of the chart's ServiceAccount.
func operatorKubeconfig(ctx context.Context) string {
	GinkgoHelper()

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}
	token := &authenticationv1.TokenRequest{}
	Expect(admin.SubResource("token").Create(ctx, account, token)).To(Succeed())

	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())

	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData = nil, nil
		user.Token = token.Status.Token
	}

	file := filepath.Join(GinkgoT().TempDir(), "operator.kubeconfig")
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())

	return file
}

// startOperator runs the operator as the chart's ServiceAccount until the container of specs ends.
func startOperator(ctx context.Context, flags ...string) *harness.Operator {
	GinkgoHelper()

	log := filepath.Join(GinkgoT().TempDir(), "operator.log")

	flags = append(flags, "--leader-election-namespace="+namespace)

	operator, err := harness.StartOperatorAs(cluster, operatorKubeconfig(ctx), []string{program}, log, flags...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			text, _ := os.ReadFile(log)
			AddReportEntry("operator log", string(text))
		}

		Expect(operator.Stop()).To(Succeed())
	})

	return operator
}
