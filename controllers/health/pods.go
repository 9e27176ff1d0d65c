package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// podsProblem says why a workload's pods do not run: what stops the oldest that something stops,
// else what the oldest waits for. It is the same each time while the trouble is the same: nothing
// in it counts, and of states that take turns it names one. It is empty if all pods are ready.
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

		problem, stops := podProblem(pod)

		problem = fmt.Sprintf("pod %s: %s", pod.Name, problem)
		if stops {
			return problem
		}

		waiting = cmp.Or(waiting, problem)
	}

	return waiting
}

// podProblem says why a pod is not ready, and whether that is more than taking its time.
func podProblem(pod *corev1.Pod) (problem string, stops bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + oneLine(c.Message), true
		}
	}

	containers := []struct {
		kind     string
		statuses []corev1.ContainerStatus
		specs    []corev1.Container
	}{
		{"init container", pod.Status.InitContainerStatuses, pod.Spec.InitContainers},
		{"container", pod.Status.ContainerStatuses, pod.Spec.Containers},
	}
	for _, c := range containers {
		for _, s := range c.statuses {
			if s.Ready || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 && c.kind == "init container" {
				continue
			}

			text, stopped := containerProblem(s, imageOf(c.specs, s), pod.Spec.RestartPolicy)

			text = fmt.Sprintf("%s %s: %s", c.kind, s.Name, text)
			if stopped {
				return text, true
			}

			problem = cmp.Or(problem, text)
		}
	}

	if pod.Status.Phase == corev1.PodFailed {
		return cmp.Or(pod.Status.Reason, "Failed") + ": " + oneLine(pod.Status.Message), true
	}

	return cmp.Or(problem, "no container has been started yet"), false
}

func containerProblem(
	s corev1.ContainerStatus,
	image string,
	restarts corev1.RestartPolicy,
) (problem string, stops bool) {
	ended := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)
	switch waiting := s.State.Waiting; {
	case waiting != nil && strings.Contains(waiting.Reason, "Image"): // two of them take turns
		return strings.Replace(waiting.Reason, "ErrImagePull", "ImagePullBackOff", 1) + ": image " + image, true
	case ended != nil && restarts != corev1.RestartPolicyNever: // waiting, running and ended take turns
		return fmt.Sprintf("CrashLoopBackOff: it ended with exit code %d (%s)", ended.ExitCode, ended.Reason), true
	case ended != nil:
		return fmt.Sprintf("it ended with exit code %d (%s)", ended.ExitCode, ended.Reason), true
	case waiting == nil:
		return "it runs, but is not ready", false
	case waiting.Reason == "ContainerCreating", waiting.Reason == "PodInitializing":
		return waiting.Reason, false
	default:
		return waiting.Reason + ": " + oneLine(waiting.Message), true
	}
}

// imageOf is the image as the manifest names it.
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

// oneLine shortens what a program says about itself.
func oneLine(message string) string {
	const most = 400

	message = strings.Join(strings.Fields(message), " ")
	if len(message) > most {
		return strings.ToValidUTF8(message[:most], "") + " …"
	}

	return message
}
