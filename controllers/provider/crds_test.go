package provider

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
)

func TestNothingToMigrate(t *testing.T) {
	g := NewWithT(t)

	g.Expect(nothingToMigrate(nil, false)).To(BeZero(), "there never was anything")

	done := nothingToMigrate(nil, true)
	g.Expect(done.done).To(BeTrue())
	g.Expect(done.reason).To(Equal(v1alpha2.CRDsMigratedReason))

	for _, before := range []bool{false, true} {
		pending := nothingToMigrate([]string{"as.example.com (in v1; applied for v1.1.0)"}, before)
		g.Expect(pending.done).To(BeFalse())
		g.Expect(pending.reason).To(Equal(v1alpha2.MigrationPendingReason))
		g.Expect(pending.message).To(ContainSubstring("as.example.com (in v1; applied for v1.1.0)"))
	}
}

// TestManagersTurn checks that the manager of each revision has a minute, unless it has tried, also if the operator is
// restarted meanwhile.
func TestManagersTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
		all, some := []string{"a.example.com", "b.example.com"}, []string{"a.example.com"}
		report := func(status metav1.ConditionStatus, at time.Time) {
			r = newTestRun(revision(r.installed.Newest.Number, v1alpha2.RevisionDeployed, wanted))
			r.provider.SetConditions([]metav1.Condition{{
				Type: v1alpha2.ReadyCondition, Status: status, LastTransitionTime: metav1.NewTime(at),
			}})
		}

		report(metav1.ConditionFalse, time.Now().Add(-time.Hour))

		g.Expect(r.managersTurn(all, all)).To(BeZero())
		g.Expect(r.migration).To(BeZero())

		g.Expect(r.managersTurn(all, some)).To(Equal(time.Minute))
		g.Expect(r.migration).To(Equal(migration{
			reason: v1alpha2.WaitingForManagerReason,
			message: "Objects of a.example.com, b.example.com may be stored in old versions; the provider's manager rewrites " +
				"them in the storage version, and the operator those that are left after a minute, while the provider is ready",
		}))

		began := time.Now()

		time.Sleep(50 * time.Second) // of the bubble's clock
		report(metav1.ConditionTrue, began)
		g.Expect(r.managersTurn(all, some)).To(Equal(10 * time.Second))

		r.installed.Newest.LastTransitionTime = metav1.Now()
		g.Expect(r.managersTurn(all, some)).To(Equal(time.Minute), "it has another manager")

		time.Sleep(10 * time.Second)
		report(metav1.ConditionTrue, began)
		g.Expect(r.managersTurn(all, some)).To(BeZero())

		report(metav1.ConditionTrue, time.Now().Add(time.Hour))
		g.Expect(r.managersTurn(all, some)).To(Equal(time.Minute), "a clock was wrong")
	})
}

// TestServedCRDs checks what follows for a change from what the API server serves of its CRDs.
func TestServedCRDs(t *testing.T) {
	established := func(status apiextensionsv1.ConditionStatus) apiextensionsv1.CustomResourceDefinitionCondition {
		return apiextensionsv1.CustomResourceDefinitionCondition{Type: apiextensionsv1.Established, Status: status}
	}
	taken := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Message: `"dm" is already in use`,
	}

	for name, test := range map[string]struct {
		conditions             []apiextensionsv1.CustomResourceDefinitionCondition
		reason, message, names string
	}{
		"all": {conditions: []apiextensionsv1.CustomResourceDefinitionCondition{established(apiextensionsv1.ConditionTrue)}},
		"not yet": {
			conditions: []apiextensionsv1.CustomResourceDefinitionCondition{established(apiextensionsv1.ConditionFalse)},
			reason:     v1alpha2.CRDsNotReadyReason,
			message:    "waiting for the API server to serve the provider's CustomResourceDefinitions",
		},
		"without a new name": {
			conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				established(apiextensionsv1.ConditionTrue), taken,
			},
			names: `CustomResourceDefinition as.example.com is served without a new name, because "dm" is already in use`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())

			live := &apiextensionsv1.CustomResourceDefinition{}
			live.Name, live.Spec.Names.ShortNames = "as.example.com", []string{"dm"}
			live.Status.Conditions = test.conditions

			cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).Build()
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.target = &clusters.Target{CRDs: crds.NewApplier(crds.Clients{Client: cached})}

			result := resultOf(r.served(t.Context(), &chart.Chart{CRDs: []chart.File{{
				Name: "crds/as.example.com.yaml", Data: []byte("metadata: {name: as.example.com}\n"),
			}}}))
			g.Expect(result.Reason).To(Equal(test.reason))
			g.Expect(result.text()).To(Equal(test.message))
			g.Expect(r.namesKept).To(Equal(test.names))
		})
	}
}

// TestUncheckedCRDs checks that changes of CRDs that could not be checked stop the change.
func TestUncheckedCRDs(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())

	live := &apiextensionsv1.CustomResourceDefinition{}
	live.Name = "as.example.com"
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).Build()
	away := interceptor.NewClient(cached, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no connection")
		},
	})

	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.target = &clusters.Target{CRDs: crds.NewApplier(crds.Clients{Client: cached, APIReader: away})}

	planned, err := r.target.CRDs.Plan(t.Context(), crds.Request{
		Label: "infrastructure-aws", Version: "v1.1.0", Files: []chart.File{{Name: "crds/as.example.com.yaml", Data: []byte(
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\n")}},
	})
	g.Expect(err).NotTo(HaveOccurred())

	result := resultOf(r.checkCRDs(t.Context(), planned))
	g.Expect(result.Outcome).To(Equal(Retrying))
	g.Expect(result.text()).To(Equal("read CustomResourceDefinition as.example.com: no connection"))
}
