package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/problem"
)

// The predecessor is cluster-api-operator, whose resources Capstan takes over. Two operators must not manage the same
// resource.

// PredecessorFinalizer is the finalizer that cluster-api-operator adds to every resource, including those that another
// operator manages.
const PredecessorFinalizer = "provider.cluster.x-k8s.io"

// PredecessorSelector is the label selector of cluster-api-operator's own objects, such as its Deployment, pods and
// webhooks. Their names depend on how it was installed; the label does not.
const PredecessorSelector = PredecessorLabel + "=" + labelValue

// PredecessorLabel is the key of PredecessorSelector.
const (
	PredecessorLabel = "clusterctl.cluster.x-k8s.io/core"
	labelValue       = "capi-operator"
)

const (
	// maxPods limits how many pods are looked at, and podsPage how many at a time: anyone may create some.
	maxPods, podsPage = 100, 10
	// interval is how often they are, as long as one runs.
	interval = 5 * time.Second
)

// PredecessorLabels returns the labels that PredecessorSelector selects.
func PredecessorLabels() client.MatchingLabels {
	return client.MatchingLabels{PredecessorLabel: labelValue}
}

// PredecessorManages reports whether cluster-api-operator manages a resource, or has managed it and was stopped.
func PredecessorManages(resource client.Object) bool {
	return controllerutil.ContainsFinalizer(resource, PredecessorFinalizer)
}

// ReleaseFinalizer removes cluster-api-operator's finalizer from a resource, and reports whether it had it.
func ReleaseFinalizer(resource client.Object) bool {
	return controllerutil.RemoveFinalizer(resource, PredecessorFinalizer)
}

// Stuck describes a resource that was deleted before Capstan took it over: the finalizer of cluster-api-operator, which
// no longer runs, blocks the deletion.
func Stuck(provider v1alpha2.Provider) string {
	return fmt.Sprintf("cluster-api-operator has installed the provider and holds this resource with the finalizer %s, "+
		"but does not run; start it again to remove the provider, or remove the finalizer, and then the cluster-wide "+
		"objects that remain, with the label %s=%s",
		PredecessorFinalizer, v1alpha2.ClusterctlProviderLabel, v1alpha2.Label(provider))
}

// Running returns the problem of cluster-api-operator managing the same resources at the same time, in a pod. Its pods
// are not watched, so they are looked for again.
func Running(pod types.NamespacedName, until time.Time) error {
	found := problem.Await(v1alpha2.OtherOperatorRunningReason,
		"cluster-api-operator also manages this resource, in pod %s, so Capstan changes nothing; to hand the resource "+
			"over, stop it: kubectl scale deployment --namespace %s --selector %s --replicas=0%s",
		pod, pod.Namespace, PredecessorSelector, v1alpha2.InstallBesideHint(pod.Namespace))
	found.Until = until

	return found
}

// CheckStopped returns a *problem.Error if cluster-api-operator runs and manages a resource. It ignores pods that it
// cannot read, and pods that the resource names as something else, because labels prove nothing.
func CheckStopped(ctx context.Context, reader client.Reader, resource v1alpha2.Provider) error {
	list := func(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
		page := &corev1.PodList{}

		return page, reader.List(
			ctx, page, PredecessorLabels(), client.Limit(options.Limit), client.Continue(options.Continue))
	}
	seen := 0

	for page, err := range paging.Pages(ctx, metav1.ListOptions{Limit: podsPage}, list) {
		if apierrors.IsForbidden(err) {
			return nil
		}

		if err != nil {
			return fmt.Errorf("look for cluster-api-operator: %w", err)
		}

		for i := range page.Items {
			pod := &page.Items[i]
			if v1alpha2.InstallsBeside(resource, pod.Namespace) {
				continue
			}

			if runs(pod) && manages(pod, resource.GetNamespace()) {
				return Running(client.ObjectKeyFromObject(pod), time.Now().Add(interval))
			}
		}

		if seen += len(page.Items); seen >= maxPods {
			break
		}
	}

	return nil
}

// runs reports whether containers of a pod run or will run.
func runs(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// manages reports whether the manager in a pod manages resources in a namespace: all, unless its flag --namespace
// is set.
func manages(pod *corev1.Pod, namespace string) bool {
	const flag = "--namespace"

	for _, container := range pod.Spec.Containers {
		args := slices.Concat(container.Command, container.Args)

		for i, arg := range args {
			value, found := strings.CutPrefix(arg, flag+"=")
			if arg == flag && i+1 < len(args) {
				value, found = args[i+1], true
			}

			if found {
				return value == "" || value == namespace
			}
		}
	}

	return true
}

// webhookPath is in the addresses of cluster-api-operator's webhooks for provider resources.
const webhookPath = "-operator-cluster-x-k8s-io-"

// Refused returns the error of a change of a provider resource as a *problem.Error if admission control refuses it,
// such as a webhook that cluster-api-operator has left behind. Other errors it returns as they are.
func Refused(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) &&
		(apierrors.IsInternalError(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) {
		return refused(err)
	}

	return err
}

// refused returns the problem of a provider resource that the API server refuses to change.
func refused(err error) error {
	hint := ""
	if apierrors.IsInternalError(err) && strings.Contains(err.Error(), webhookPath) {
		hint = "; if cluster-api-operator no longer runs, delete its webhooks: kubectl delete " +
			"validatingwebhookconfigurations,mutatingwebhookconfigurations --selector " + PredecessorSelector
	}

	found := problem.Refuse(v1alpha2.ChangeRefusedReason,
		"the API server refuses to change this resource: %v%s", err, hint)
	found.Cause, found.Alone = err, true

	return found
}
