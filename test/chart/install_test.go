package chart

import (
	"context"
	"os"
	"os/exec"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// account is the ServiceAccount in a provider's namespace that installs the provider.
const account = "installer"

// commandLine returns the path of the command line, which is built once if at all.
var commandLine = sync.OnceValues(func() (string, error) {
	return harness.Program(context.Background(), root, cluster.Dir(), harness.CapstanProgram)
})

// install creates a sample provider's resource, everything it refers to, and its account with the
// permissions that it needs.
func install(ctx context.Context, wanted harness.Wanted) v1alpha2.Provider {
	GinkgoHelper()

	loaded, err := harness.Load(ctx, samples, wanted)
	Expect(err).NotTo(HaveOccurred())
	Expect(loaded.Prepare(ctx, admin)).To(Succeed())

	p := loaded.Resource()
	p.GetSpec().ServiceAccountName = account
	createAccount(ctx, p.GetNamespace())
	grantAccount(ctx, p)
	Expect(admin.Create(ctx, p)).To(Succeed())

	return p
}

// createAccount creates the account in a provider's namespace.
func createAccount(ctx context.Context, namespace string) {
	GinkgoHelper()

	o := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, o))).To(Succeed())
}

// grantAccount grants the account of a resource exactly what `capstan permissions` prints.
func grantAccount(ctx context.Context, p v1alpha2.Provider, flags ...string) {
	GinkgoHelper()

	p = p.DeepCopyObject().(v1alpha2.Provider)
	p.SetManagedFields(nil)
	p.GetObjectKind().SetGroupVersionKind(v1alpha2.GroupVersion.WithKind(string(p.ProviderType())))

	resource, err := yaml.Marshal(p)
	Expect(err).NotTo(HaveOccurred())
	commands, err := commandLine()
	Expect(err).NotTo(HaveOccurred())

	command := exec.CommandContext(ctx, commands,
		append([]string{"permissions", "--filename", yamlFile(string(resource))}, flags...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
	command.Stderr = GinkgoWriter

	roles, err := command.Output()
	Expect(err).NotTo(HaveOccurred())
	Expect(string(roles)).To(ContainSubstring("resourceNames"))
	run(ctx, "kubectl", "apply", "-f", yamlFile(string(roles)))
}
