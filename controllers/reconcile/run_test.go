package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestPolicyOfRelease(t *testing.T) {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }

	for name, c := range map[string]struct {
		spec *v1alpha2.ReleaseSpec
		want state.Policy
	}{
		"defaults": {nil, state.Policy{Retries: 3, Timeout: 5 * time.Minute, Rollback: true}},
		"all fields": {
			&v1alpha2.ReleaseSpec{
				Retries: new(int32(1)), RetryInterval: seconds(30), Timeout: seconds(60),
				OnFailure: v1alpha2.FailureNone, OnExternalChange: v1alpha2.ExternalChangeRevert,
			},
			state.Policy{Retries: 1, RetryInterval: 30 * time.Second, Timeout: time.Minute, Revert: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			provider := &v1alpha2.CoreProvider{}
			provider.Spec.Release = c.spec

			NewWithT(t).Expect(newRun(&Reconciler{}, provider, nil).policy).To(Equal(c.want))
		})
	}
}
