package provider

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/acl"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/namespaces"
	"github.com/capstan-project/capstan/controllers/problem"
)

// TestFollowInputs checks that only namespaces are watched in which the resource's objects can be read.
func TestFollowInputs(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "x")

	for name, tt := range map[string]struct {
		err      error
		followed []string
	}{
		"all were read":                {nil, []string{"production", "absent"}},
		"the account may not read":     {problem.Refuse(v1alpha2.MissingPermissionsReason, "no"), nil},
		"flags do not allow it":        {acl.AccessDeniedError("no"), nil},
		"the Secret does not exist":    {problem.Refuse(v1alpha2.SecretNotFoundReason, "no"), []string{"production"}},
		"the ConfigMap does not exist": {&problem.Error{Cause: notFound}, []string{"production"}},
		"nothing was read by then":     {errors.New("the source does not answer"), []string{"before"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := metadatafake.NewTestScheme()
			g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())

			r := newTestRun()
			r.APIReader = fake.NewClientBuilder().
				WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "production"}}).Build()

			r.Watches = namespaces.New(metadatafake.NewSimpleMetadataClient(scheme), nil)
			go func() { _ = r.Watches.Start(t.Context()) }()

			r.provider.GetSpec().ConfigSecret = &v1alpha2.SecretReference{Namespace: "production", Name: "settings"}
			r.provider.GetSpec().AdditionalManifests = &v1alpha2.ConfigMapReference{Namespace: "absent", Name: "more"}

			r.Watches.Follow(inputsOf(r.provider), "before")

			var woken int

			r.Wake = func(string, string, time.Duration) { woken++ }

			r.followInputs(t.Context(), nil, tt.err)
			g.Expect(woken).To(BeZero(), "everything that was read was watched")

			r.followInputs(t.Context(), []string{"production"}, tt.err)
			g.Expect(woken == 1).To(Equal(slices.Contains(tt.followed, "production")))

			for _, namespace := range []string{"before", "production", "absent"} {
				watched := func() bool {
					_, known := r.Watches.Records(types.NamespacedName{Namespace: namespace, Name: "x"})
					return known
				}

				if slices.Contains(tt.followed, namespace) {
					g.Eventually(watched).Should(BeTrue(), namespace)
				} else {
					g.Expect(watched()).To(BeFalse(), namespace)
				}
			}
		})
	}
}
