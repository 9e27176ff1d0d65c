package takeover

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// manager returns the pod of a manager with a command line.
func manager(args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capi-operator-system", Name: "manager", Labels: PredecessorLabels()},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"/manager"}, Args: args}}},
	}
}

func TestCheckStopped(t *testing.T) {
	ended, failed, other := manager(), manager(), manager()
	ended.Status.Phase = corev1.PodSucceeded
	failed.Status.Phase = corev1.PodFailed
	other.Labels = map[string]string{"control-plane": "controller-manager"}

	for name, c := range map[string]struct {
		pod     *corev1.Pod
		running bool
		beside  string // the annotation of the resource
	}{
		"none":                          {pod: other},
		"one":                           {pod: manager("--leader-elect"), running: true},
		"one that has ended":            {pod: ended},
		"one that has failed":           {pod: failed},
		"one for another namespace":     {pod: manager("--namespace=other")},
		"one for another, as two words": {pod: manager("--namespace", "other")},
		"one for this namespace":        {pod: manager("--namespace=capi-system"), running: true},
		"one for this, as two words":    {pod: manager("--namespace", "capi-system"), running: true},
		"one for all namespaces":        {pod: manager("--namespace="), running: true},
		"a flag without a value":        {pod: manager("--namespace"), running: true},
		"a flag with a similar name":    {pod: manager("--namespaces=other"), running: true},
		"one that is something else":    {pod: manager(), beside: "other, capi-operator-system"},
		"one beside something else":     {pod: manager(), beside: "other", running: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			resource := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{
				Namespace: "capi-system", Annotations: map[string]string{v1alpha2.InstallBesideAnnotation: c.beside},
			}}
			err := CheckStopped(t.Context(), fake.NewFakeClient(c.pod), resource)

			if c.running {
				g.Expect(err).To(MatchError(And(
					ContainSubstring("pod capi-operator-system/manager"),
					ContainSubstring("--namespace capi-operator-system --selector "+PredecessorSelector+" --replicas=0"),
					ContainSubstring(v1alpha2.InstallBesideAnnotation+": capi-operator-system"))))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

// TestCheckStoppedWithErrors checks that an operator that may not list pods is not stopped by that.
func TestCheckStoppedWithErrors(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}

	for name, c := range map[string]struct {
		err    error
		passes bool
	}{
		"forbidden":  {apierrors.NewForbidden(pods, "", nil), true},
		"overloaded": {apierrors.NewTooManyRequests("later", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			list := func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return c.err }
			reader := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()

			err := CheckStopped(t.Context(), reader, &v1alpha2.CoreProvider{})
			NewWithT(t).Expect(err == nil).To(Equal(c.passes), "%v", err)
		})
	}
}

func TestRefused(t *testing.T) {
	kind := schema.GroupResource{Resource: "coreproviders"}
	webhook := func(path string) error {
		return apierrors.NewInternalError(errors.New(`failed calling webhook "vcoreprovider.kb.io": failed to call ` +
			`webhook: Post "https://webhook-service.capi-operator-system.svc:443/` + path + `?timeout=10s": no endpoints`))
	}

	for name, c := range map[string]struct {
		err           error
		refused, hint bool
	}{
		"success":             {},
		"a lost connection":   {err: errors.New("EOF")},
		"a conflict":          {err: apierrors.NewConflict(kind, "x", errors.New("changed"))},
		"a policy":            {err: apierrors.NewForbidden(kind, "x", errors.New("denied")), refused: true},
		"a webhook of others": {err: webhook("validate"), refused: true},
		"its own webhook": {
			err: webhook("validate-operator-cluster-x-k8s-io-v1alpha2-coreprovider"), refused: true, hint: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := Refused(c.err)
			g.Expect(problem.Is(err, v1alpha2.ChangeRefusedReason)).To(Equal(c.refused))

			if !c.refused {
				g.Expect(err == nil).To(Equal(c.err == nil))
				return
			}

			g.Expect(err).To(MatchError(c.err))

			if c.hint {
				g.Expect(err).To(MatchError(ContainSubstring("--selector " + PredecessorSelector)))
			} else {
				g.Expect(err).NotTo(MatchError(ContainSubstring(PredecessorSelector)))
			}
		})
	}
}
