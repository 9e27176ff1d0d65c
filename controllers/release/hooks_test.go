package release_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/longwait"
	"github.com/capstan-project/capstan/controllers/release"
)

var _ = Describe("Hooks", func() {
	const timeout = 3 * time.Second

	// Without a node no Pod ends, and the finalizer keeps the ConfigMap after it has served its purpose.
	const (
		endless = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: endless\n  annotations: {helm.sh/hook: pre-install}\n" +
			"spec: {containers: [{name: endless, image: registry.example.com/endless:v1}]}\n"
		kept = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  finalizers: [release.test/hold]\n" +
			"  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-succeeded}\n"
	)

	DescribeTable("are waited for within a limit, and that is announced", func(ctx SpecContext, hook, what string) {
		engine, err := release.NewEngine(apiServer.Config(), release.Options{Holder: "one", HookTimeout: timeout})
		Expect(err).NotTo(HaveOccurred())

		namespace := newNamespace(ctx)

		DeferCleanup(func(ctx SpecContext) {
			_, err := client.CoreV1().ConfigMaps(namespace).Patch(ctx, "kept", types.MergePatchType,
				[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			Expect(err).To(Or(Not(HaveOccurred()), beNotFound()))
		})

		var announced []string

		waiting := longwait.With(ctx, func(what string) { announced = append(announced, what) })
		start := time.Now()
		_, err = apply(waiting, engine, specOf(namespace, "1.0.0", hook, configMap("config", "")))

		Expect(time.Since(start)).To(BeNumerically("<", 3*timeout))
		Expect(err).To(MatchError(ContainSubstring(what + namespace)))
		Expect(announced).To(ConsistOf(HavePrefix(what + namespace)))
		Expect(history(ctx, namespace)).To(Equal([]string{"1 failed"}))
	},
		Entry("while they run", endless, "hook Pod "),
		Entry("while they are deleted", kept, "the deletion of hook ConfigMap "),
	)

	It("are kept if they are CRDs or namespaces, whatever their deletion policy is", func(ctx SpecContext) {
		engine, err := release.NewEngine(apiServer.Config(), release.Options{Holder: "one", HookTimeout: timeout})
		Expect(err).NotTo(HaveOccurred())

		namespace := newNamespace(ctx)
		annotations := "metadata:\n  annotations: {helm.sh/hook: pre-install, " +
			"helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"}\n"
		hooks := []string{
			strings.Replace(crd("hooked"), "metadata:\n", annotations, 1),
			"apiVersion: v1\nkind: Namespace\n" + annotations + "  name: " + namespace + "-hook\n",
		}

		mustApply(ctx, engine, specOf(namespace, "1.0.0", append(hooks, configMap("config", ""))...))
		run(ctx, "kubectl", "get", "crd/hooked.release.test", "namespace/"+namespace+"-hook")
	})
})
