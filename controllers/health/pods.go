package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// podsProblem returns why a workload's pods do not run: the problem of the oldest pod that is stuck,
// or else what the oldest pod is waiting for. It is empty if all pods are ready.
//
// The text stays the same as long as the problem does: it has no counters or times, and where a
// container alternates between states, it always names the same one.
func podsProblem(pods []corev1.Pod) string {
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})

	waiting := ""

	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || isTrue(pod, corev1.PodReady) {
			continue
		}

		problem, stuck := podProblem(pod)
		problem = fmt.Sprintf("%s (pod %s)", problem, pod.Name)

		if stuck {
			return problem
		}

		waiting = cmp.Or(waiting, problem)
	}

	return waiting
}

// podProblem returns why a pod is not ready. stuck is false if it may only need more time.
func podProblem(pod *corev1.Pod) (problem string, stuck bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			// The next sentence says why evicting other pods would not help.
			message, _, _ := strings.Cut(oneLine(c.Message), ". ")

			return c.Reason + ": " + strings.TrimSuffix(message, "."), true
		}
	}

	initProblem, stuck := initContainersProblem(pod)
	if stuck {
		return initProblem, true
	}

	problem, stuck = containersProblem(pod)
	if stuck {
		return problem, true
	}

	if pod.Status.Phase == corev1.PodFailed {
		return cmp.Or(pod.Status.Reason, "Failed") + ": " + oneLine(pod.Status.Message), true
	}

	if isTrue(pod, corev1.ContainersReady) {
		return unreadyProblem(pod), false
	}

	return cmp.Or(initProblem, problem, "no container has been started yet"), false
}

// unreadyProblem returns why a pod is not ready although its containers are: of its readiness gates, which the kubelet
// explains, or of its node, for which Kubernetes says only that the pod is not ready.
func unreadyProblem(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Message != "" {
			return "the containers are ready, but " + oneLine(c.Message)
		}
	}

	return fmt.Sprintf("the containers were ready when node %s was last heard of; see kubectl describe node %[1]s",
		pod.Spec.NodeName)
}

// initContainersProblem returns the problem of the first init container that is stuck, or else of
// the first that has not finished.
func initContainersProblem(pod *corev1.Pod) (problem string, stuck bool) {
	unfinished := slices.DeleteFunc(slices.Clone(pod.Status.InitContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
	})

	return firstProblem(pod, "init container", unfinished, pod.Spec.InitContainers)
}

// containersProblem returns the problem of the first container that is stuck, or else of the first
// that is not ready.
func containersProblem(pod *corev1.Pod) (problem string, stuck bool) {
	return firstProblem(pod, "container", pod.Status.ContainerStatuses, pod.Spec.Containers)
}

func firstProblem(
	pod *corev1.Pod,
	kind string,
	statuses []corev1.ContainerStatus,
	containers []corev1.Container,
) (problem string, stuck bool) {
	for _, s := range statuses {
		if s.Ready {
			continue
		}

		text, stuck := containerProblem(s, imageOf(containers, s), pod.Spec.RestartPolicy)
		text = fmt.Sprintf("%s %s: %s", kind, s.Name, text)

		if stuck {
			return text, true
		}

		problem = cmp.Or(problem, text)
	}

	return problem, false
}

// containerProblem returns why a container is not ready.
func containerProblem(
	s corev1.ContainerStatus,
	image string,
	policy corev1.RestartPolicy,
) (problem string, stuck bool) {
	waiting := s.State.Waiting
	exited := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)

	switch {
	case waiting != nil && strings.Contains(waiting.Reason, "Image"):
		// ErrImagePull and ImagePullBackOff alternate.
		return strings.Replace(waiting.Reason, "ErrImagePull", "ImagePullBackOff", 1) + ": image " + image, true
	case exited != nil && policy != corev1.RestartPolicyNever:
		// The states waiting, running and terminated alternate.
		return fmt.Sprintf("CrashLoopBackOff: exited with code %d (%s)", exited.ExitCode, exited.Reason), true
	case exited != nil:
		return fmt.Sprintf("exited with code %d (%s)", exited.ExitCode, exited.Reason), true
	case waiting == nil:
		return "running but not ready", false
	case waiting.Reason == "ContainerCreating", waiting.Reason == "PodInitializing":
		return waiting.Reason, false
	default:
		return waiting.Reason + ": " + oneLine(waiting.Message), true
	}
}

// hasInvalidImage reports whether a pod cannot start because the workload, whose images are given, names one that is
// not a valid name. Pods of an earlier version of the workload do not count.
func hasInvalidImage(images map[string]string, pods []corev1.Pod) bool {
	invalid := func(pod corev1.Pod) bool {
		statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)

		return pod.DeletionTimestamp == nil && slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool {
			return s.State.Waiting != nil && s.State.Waiting.Reason == "InvalidImageName" &&
				imageOf(containers, s) == images[s.Name]
		})
	}

	return slices.ContainsFunc(pods, invalid)
}

// imageOf returns the image of a container as its manifest names it.
func imageOf(containers []corev1.Container, s corev1.ContainerStatus) string {
	for _, c := range containers {
		if c.Name == s.Name {
			return c.Image
		}
	}

	return s.Image
}

func isTrue(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}

// oneLine returns a message of another program in one line of limited length.
func oneLine(message string) string {
	const maxLength = 400

	message = strings.Join(strings.Fields(message), " ")
	if len(message) > maxLength {
		return strings.ToValidUTF8(message[:maxLength], "") + " …"
	}

	return message
}
