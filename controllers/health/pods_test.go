package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod returns a pod with a container "manager" and an age in minutes.
func pod(name string, age int, state corev1.ContainerStatus, changes ...func(*corev1.Pod)) corev1.Pod {
	state.Name = "manager"

	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Duration(age) * time.Minute)),
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers:    []corev1.Container{{Name: "manager", Image: "registry.example.com/foo:v9"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{state}},
	}
	for _, change := range changes {
		change(&p)
	}

	return p
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}
}

func ended(code int32, reason string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: "password=hunter2"}
}

func withCondition(t corev1.PodConditionType, s corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(
			p.Status.Conditions,
			corev1.PodCondition{Type: t, Status: s, Reason: reason, Message: message},
		)
	}
}

func TestPodsProblem(t *testing.T) {
	ready := withCondition(corev1.PodReady, corev1.ConditionTrue, "", "")
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	backOff := waiting("CrashLoopBackOff", "back-off 2m40s restarting failed container=manager")
	backOff.LastTerminationState.Terminated = ended(1, "Error")
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	runsAgain := running
	runsAgain.LastTerminationState.Terminated = ended(1, "Error")
	crashed := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(1, "Error")}}
	killed := waiting("CrashLoopBackOff", "back-off 10s")

	killed.LastTerminationState.Terminated = ended(137, "OOMKilled")
	for name, test := range map[string]struct {
		pods     []corev1.Pod
		expected string
	}{
		"none":                         {nil, ""},
		"ready":                        {[]corev1.Pod{pod("a", 1, running, ready)}, ""},
		"being deleted":                {[]corev1.Pod{pod("a", 1, backOff, deleted)}, ""},
		"an image that does not exist": {[]corev1.Pod{pod("a", 1, waiting("ImagePullBackOff", "Back-off pulling image"))}, "pod a: container manager: ImagePullBackOff: image registry.example.com/foo:v9"},
		"the alternating reason":       {[]corev1.Pod{pod("a", 1, waiting("ErrImagePull", "not found"))}, "pod a: container manager: ImagePullBackOff: image registry.example.com/foo:v9"},
		"an invalid image name":        {[]corev1.Pod{pod("a", 1, waiting("InvalidImageName", "x"))}, "pod a: container manager: InvalidImageName: image registry.example.com/foo:v9"},
		"crashed and waiting":          {[]corev1.Pod{pod("a", 1, backOff)}, "pod a: container manager: CrashLoopBackOff: exited with code 1 (Error)"},
		"crashed and running again":    {[]corev1.Pod{pod("a", 1, runsAgain)}, "pod a: container manager: CrashLoopBackOff: exited with code 1 (Error)"},
		"just crashed":                 {[]corev1.Pod{pod("a", 1, crashed)}, "pod a: container manager: CrashLoopBackOff: exited with code 1 (Error)"},
		"not restarted":                {[]corev1.Pod{pod("a", 1, crashed, never)}, "pod a: container manager: exited with code 1 (Error)"},
		"out of memory":                {[]corev1.Pod{pod("a", 1, killed)}, "pod a: container manager: CrashLoopBackOff: exited with code 137 (OOMKilled)"},
		"a missing Secret":             {[]corev1.Pod{pod("a", 1, waiting("CreateContainerConfigError", `secret "x" not found`))}, `pod a: container manager: CreateContainerConfigError: secret "x" not found`},
		"no node":                      {[]corev1.Pod{pod("a", 1, corev1.ContainerStatus{}, withCondition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/2 nodes are available"))}, "pod a: Unschedulable: 0/2 nodes are available"},
		"evicted": {[]corev1.Pod{pod("a", 1, running, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
		})}, "pod a: Evicted: low on memory"},
		"starting":            {[]corev1.Pod{pod("a", 1, waiting("ContainerCreating", ""))}, "pod a: container manager: ContainerCreating"},
		"not ready":           {[]corev1.Pod{pod("a", 1, running)}, "pod a: container manager: running but not ready"},
		"no container status": {[]corev1.Pod{pod("a", 1, corev1.ContainerStatus{}, func(p *corev1.Pod) { p.Status.ContainerStatuses = nil })}, "pod a: no container has been started yet"},
		"the oldest of several": {[]corev1.Pod{pod("a", 1, backOff), pod("c", 3, waiting("ContainerCreating", "")), pod("b", 2, killed), pod("d", 9, running, ready)},
			"pod b: container manager: CrashLoopBackOff: exited with code 137 (OOMKilled)"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(podsProblem(test.pods)).To(Equal(test.expected))
		})
	}
}

func TestInitContainerProblem(t *testing.T) {
	g := NewWithT(t)
	p := pod("a", 1, waiting("PodInitializing", ""), func(p *corev1.Pod) {
		done := corev1.ContainerStatus{Name: "first", State: corev1.ContainerState{Terminated: ended(0, "Completed")}}
		stuck := corev1.ContainerStatus{
			Name:  "second",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
		}
		p.Spec.InitContainers = []corev1.Container{{Name: "first"}, {Name: "second", Image: "init:v1"}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{done, stuck}
	})
	g.Expect(podsProblem([]corev1.Pod{p})).To(Equal("pod a: init container second: ImagePullBackOff: image init:v1"))
}
