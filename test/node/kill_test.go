package node

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed/node"
)

// kill ends a pod of the operator as a power failure would, without a graceful shutdown. It deletes
// the pod's object first, so that the pod is not started again.
func kill(ctx context.Context, pod string) {
	GinkgoHelper()

	// Once the object is deleted, kubelet ends them as well.
	processes, err := node.Processes(pod)
	Expect(err).NotTo(HaveOccurred())
	Expect(
		admin.Delete(
			ctx,
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}},
			client.GracePeriodSeconds(0),
		),
	).To(Succeed())
	Expect(node.Kill(processes)).To(Succeed())
}
