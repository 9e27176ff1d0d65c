package cli

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStopped(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	lease := func(holder string, age time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "capstan-system"},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &holder, LeaseDurationSeconds: new(int32(35)),
				RenewTime: &metav1.MicroTime{Time: now.Add(-age)},
			},
		}
	}

	const crashed = "no operator has renewed its lease for 41s, so nothing is reconciled; see " +
		"`kubectl get pods -n capstan-system`"

	for name, c := range map[string]struct {
		leases []coordinationv1.Lease
		want   string
	}{
		"no lease":               {nil, ""},
		"held":                   {[]coordinationv1.Lease{lease("a", 5*time.Second)}, ""},
		"crashed":                {[]coordinationv1.Lease{lease("a", 41*time.Second)}, crashed},
		"released":               {[]coordinationv1.Lease{lease("", 41*time.Second)}, crashed},
		"crashed, another holds": {[]coordinationv1.Lease{lease("a", time.Hour), lease("b", time.Second)}, ""},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(stopped(c.leases, now)).To(Equal(c.want)) })
	}
}

// TestNamedRepeatsFlags: commands that are proposed find the same cluster and namespace.
func TestNamedRepeatsFlags(t *testing.T) {
	g := NewWithT(t)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddClusterFlags(flags)
	g.Expect(flags.Parse([]string{"--context", "a b", "-n", "capa-system", "--request-timeout", "5s"})).To(Succeed())

	o := &Options{Program: "kubectl capstan"}
	o.Repeat(flags)

	g.Expect(o.Named("run `capstan resume aws` or `helm list`")).To(Equal("run `kubectl capstan resume aws " +
		"--context 'a b' --namespace capa-system --request-timeout 5s` or `helm list`"))
	g.Expect(o.Named("`capstan status --namespace x`")).To(HavePrefix("`kubectl capstan status --namespace x --context "))
}
