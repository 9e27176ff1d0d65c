package health

import (
	"slices"
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

	const (
		pullFails = "container manager: ImagePullBackOff: image registry.example.com/foo:v9 (pod a)"
		crashes   = "container manager: CrashLoopBackOff: exited with code 1 (Error) (pod a)"
	)

	unschedulable := withCondition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable",
		"0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. preemption: 0/2 nodes are available.")
	evicted := func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
	}
	up := running
	up.Ready = true
	containersReady := withCondition(corev1.ContainersReady, corev1.ConditionTrue, "", "")
	unreachable := withCondition(corev1.PodReady, corev1.ConditionFalse, "", "")
	gated := withCondition(corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady",
		`the status of pod readiness gate "example.com/lb" is not "True", but False`)
	onNode := func(p *corev1.Pod) { p.Spec.NodeName = "worker-1" }
	readyBeside := func(p *corev1.Pod) {
		proxy := corev1.ContainerStatus{Name: "proxy", Ready: true}
		p.Status.ContainerStatuses = slices.Insert(p.Status.ContainerStatuses, 0, proxy)
	}
	withoutStatus := func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }

	// one returns a single pod.
	one := func(state corev1.ContainerStatus, changes ...func(*corev1.Pod)) []corev1.Pod {
		return []corev1.Pod{pod("a", 1, state, changes...)}
	}

	for _, c := range []struct {
		name string
		pods []corev1.Pod
		want string
	}{
		{"no pods", nil, ""},
		{"ready", one(running, ready), ""},
		{"being deleted", one(backOff, deleted), ""},
		{"image that does not exist", one(waiting("ImagePullBackOff", "Back-off pulling image")), pullFails},
		{"image that does not exist, alternating reason", one(waiting("ErrImagePull", "not found")), pullFails},
		{
			"invalid image name",
			one(waiting("InvalidImageName", "x")),
			"container manager: InvalidImageName: image registry.example.com/foo:v9 (pod a)",
		},
		{"crashed and waiting", one(backOff), crashes},
		{"crashed and running again", one(runsAgain), crashes},
		{"just crashed", one(crashed), crashes},
		{"crashed beside one that is ready", one(crashed, readyBeside), crashes},
		{
			"crashed and not restarted",
			one(crashed, never),
			"container manager: exited with code 1 (Error) (pod a)",
		},
		{
			"out of memory",
			one(killed),
			"container manager: CrashLoopBackOff: exited with code 137 (OOMKilled) (pod a)",
		},
		{
			"missing Secret",
			one(waiting("CreateContainerConfigError", `secret "x" not found`)),
			`container manager: CreateContainerConfigError: secret "x" not found (pod a)`,
		},
		{
			"no node",
			one(corev1.ContainerStatus{}, unschedulable),
			"Unschedulable: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector (pod a)",
		},
		{"evicted", one(running, evicted), "Evicted: low on memory (pod a)"},
		{"starting", one(waiting("ContainerCreating", "")), "container manager: ContainerCreating (pod a)"},
		{"not ready", one(running), "container manager: running but not ready (pod a)"},
		{
			"ready, but for a readiness gate",
			one(up, containersReady, gated, onNode),
			`the containers are ready, but the status of pod readiness gate "example.com/lb" is not "True", but False (pod a)`,
		},
		{
			"on a node that is not reachable",
			one(up, containersReady, unreachable, onNode),
			"the containers were ready when node worker-1 was last heard of; see kubectl describe node worker-1 (pod a)",
		},
		{
			"no container status",
			one(corev1.ContainerStatus{}, withoutStatus),
			"no container has been started yet (pod a)",
		},
		{
			"the oldest of several",
			[]corev1.Pod{
				pod("a", 1, backOff),
				pod("c", 3, waiting("ContainerCreating", "")),
				pod("b", 2, killed),
				pod("d", 9, running, ready),
			},
			"container manager: CrashLoopBackOff: exited with code 137 (OOMKilled) (pod b)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			NewWithT(t).Expect(podsProblem(c.pods)).To(Equal(c.want))
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
	g.Expect(podsProblem([]corev1.Pod{p})).To(Equal("init container second: ImagePullBackOff: image init:v1 (pod a)"))
}

func TestInvalidImage(t *testing.T) {
	const image = "registry.example.com/foo:v9" // of the pods

	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }

	for name, test := range map[string]struct {
		image string // of the workload
		pod   corev1.Pod
		want  bool
	}{
		"invalid":                       {image, pod("a", 1, waiting("InvalidImageName", "")), true},
		"invalid in an earlier version": {"foo:v10", pod("a", 1, waiting("InvalidImageName", "")), false},
		"invalid, but being deleted":    {image, pod("a", 1, waiting("InvalidImageName", ""), deleted), false},
		"does not exist, or not yet":    {image, pod("a", 1, waiting("ImagePullBackOff", "")), false},
		"crashes":                       {image, pod("a", 1, waiting("CrashLoopBackOff", "")), false},
	} {
		t.Run(name, func(t *testing.T) {
			images := map[string]string{"manager": test.image}
			NewWithT(t).Expect(hasInvalidImage(images, []corev1.Pod{test.pod})).To(Equal(test.want))
		})
	}
}
