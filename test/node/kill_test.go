package node

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kill ends a pod of the operator as a power failure would, without a graceful shutdown. It deletes
// the pod's object first, so that the pod is not started again.
func kill(ctx context.Context, pod string) {
	GinkgoHelper()
	Expect(
		admin.Delete(
			ctx,
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod}},
			client.GracePeriodSeconds(0),
		),
	).To(Succeed())

	processes, err := filepath.Glob("/proc/[0-9]*")
	Expect(err).NotTo(HaveOccurred())

	found := 0

	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))

		environment, _ := os.ReadFile(filepath.Join(process, "environ"))
		if !strings.HasPrefix(string(command), "/operator\x00") ||
			!strings.Contains(string(environment), "HOSTNAME="+pod+"\x00") {
			continue
		}

		found++
		pid, err := strconv.Atoi(filepath.Base(process))
		Expect(err).NotTo(HaveOccurred())
		victim, err := os.FindProcess(pid)
		Expect(err).NotTo(HaveOccurred())
		Expect(victim.Kill()).To(Succeed())
	}

	Expect(found).To(Equal(1), "processes of pod %s", pod)
}
