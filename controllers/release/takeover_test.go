package release_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/release"
)

var _ = Describe("The fields of another installer", func() {
	var (
		namespace string
		engine    *release.Engine
	)

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
	})

	// kubectl runs kubectl with an object as its input.
	kubectl := func(ctx context.Context, object string, args ...string) {
		GinkgoHelper()

		cmd := command(ctx, "kubectl", append(args, "-n", namespace, "-f", "-")...)
		cmd.Stdin = strings.NewReader(object)
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
	}
	serving := func(port int) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata:\n  name: serving\n"+
			"spec:\n  selector: {app: manager}\n  ports: [{name: https, port: %d}]\n", port)
	}

	DescribeTable("go when an object is adopted, although the mixture of both is invalid",
		func(ctx SpecContext, args ...string) {
			kubectl(ctx, serving(443), args...)
			kubectl(ctx, strings.Replace(deployment("manager", "1"), "containers:",
				"nodeSelector: {old: \"yes\"}\n      containers:\n      - {name: old, image: old}", 1), args...)

			mustApply(ctx, engine, specOf(namespace, "1.0.0", serving(8443), deployment("manager", "1")))

			service, err := client.CoreV1().Services(namespace).Get(ctx, "serving", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(service.Spec.Ports).To(ConsistOf(HaveField("Port", int32(8443))))

			d := getDeployment(ctx, namespace, "manager")
			Expect(d.Spec.Template.Spec.NodeSelector).To(BeEmpty())
			Expect(d.Spec.Template.Spec.Containers).To(ConsistOf(HaveField("Name", "manager")))

			for _, e := range append(service.ManagedFields, d.ManagedFields...) {
				Expect(e).To(Or(HaveField("Manager", "capstan"), HaveField("Subresource", "status")), "%s", e.FieldsV1)
			}
		},
		Entry("kubectl apply", "apply"),
		Entry("kubectl apply by the server", "apply", "--server-side"),
		Entry("kubectl create", "create"),
		Entry("clusterctl", "create", "--field-manager=clusterctl"),
		Entry("cluster-api-operator", "apply", "--server-side", "--field-manager=capi-operator"),
		Entry("helm", "apply", "--server-side", "--field-manager=helm"),
	)

	It("stay if a user adds them to an object of the release", func(ctx SpecContext) {
		spec := func(version string) release.Spec {
			return specOf(namespace, version, deployment("manager", "1"), configMap("config", version))
		}
		mustApply(ctx, engine, spec("1.0.0"))
		kubectl(ctx, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager, annotations: {team: a}}\n",
			"apply", "--server-side")
		Expect(compare(ctx, engine, namespace).Differences).To(BeEmpty())

		mustApply(ctx, engine, spec("1.1.0"))
		Expect(getDeployment(ctx, namespace, "manager").Annotations).To(HaveKeyWithValue("team", "a"))
	})

	DescribeTable("go after a user has rolled back the release",
		func(ctx SpecContext, helm string) {
			first := specOf(namespace, "1.0.0", configMap("config", "x")+"  old: value\n", deployment("manager", "1"))
			second := specOf(namespace, "1.1.0", configMap("config", "x"), deployment("manager", "1"))

			mustApply(ctx, engine, first)
			mustApply(ctx, engine, second)
			Expect(getConfigMap(ctx, namespace, "config").Data).NotTo(HaveKey("old"))

			run(ctx, helm, "rollback", name, "1", "-n", namespace)
			Expect(getConfigMap(ctx, namespace, "config").Data).To(HaveKey("old"))

			mustApply(ctx, engine, specOf(namespace, "1.2.0", configMap("config", "y"), deployment("manager", "1")))
			Expect(getConfigMap(ctx, namespace, "config").Data).To(Equal(map[string]string{"key": "y"}))
		},
		Entry(nil, "helm"), Entry(nil, "helm4"),
	)
})
