package metrics

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func aws() *v1alpha2.InfrastructureProvider {
	return &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}}
}

func TestRecorder(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewPedanticRegistry()
	r := NewRecorder(registry, "v1.2.3")
	r.InitCounters(aws())
	r.CountReleaseAction(aws(), ActionInstall, nil)
	r.CountReleaseAction(aws(), ActionUpgrade, nil)
	r.CountReleaseAction(aws(), ActionUpgrade, errors.New("no"))
	r.CountDriftDetected(aws(), 3)
	r.CountDriftCorrected(aws(), 2)
	r.CountCRDDeletion(aws())
	r.ObserveFetch(SourceOCI, 100, nil)
	r.ObserveFetch(SourceOCI, 20, nil)
	r.ObserveFetch(SourceURL, 0, errors.New("no"))
	r.SetChartSize(aws(), 4096)
	r.TimeStep(v1alpha2.CoreProviderType, StepCRDs)()

	provider := `name="aws",namespace="capa-system",type="InfrastructureProvider"`
	action := func(action, result string) string {
		return `capstan_release_actions_total{action="` + action + `",` + strings.Replace(
			provider,
			",type",
			`,result="`+result+`",type`,
			1,
		) + `} `
	}
	expected := strings.Join([]string{
		"# HELP capstan_build_info Always 1; the label is the operator's version.",
		"# TYPE capstan_build_info gauge",
		`capstan_build_info{version="v1.2.3"} 1`,
		"# HELP capstan_chart_bytes Size of the archive of a provider's current chart.",
		"# TYPE capstan_chart_bytes gauge",
		"capstan_chart_bytes{" + provider + "} 4096",
		"# HELP capstan_drift_total Drifted objects of a provider that were detected, and those that were corrected.",
		"# TYPE capstan_drift_total counter",
		"capstan_drift_total{" + strings.Replace(provider, ",type", `,outcome="corrected",type`, 1) + "} 2",
		"capstan_drift_total{" + strings.Replace(provider, ",type", `,outcome="detected",type`, 1) + "} 3",
		"# HELP capstan_release_actions_total Actions on a provider's Helm release, by action and result.",
		"# TYPE capstan_release_actions_total counter",
		action("install", "failed") + "0",
		action("install", "succeeded") + "1",
		action("rollback", "failed") + "0",
		action("rollback", "succeeded") + "0",
		action("upgrade", "failed") + "1",
		action("upgrade", "succeeded") + "1",
	}, "\n") + "\n"
	g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(expected),
		"capstan_build_info", "capstan_chart_bytes", "capstan_drift_total", "capstan_release_actions_total")).To(Succeed())
	g.Expect(testutil.ToFloat64(r.crdDeletions.WithLabelValues(labelsOf(aws())...))).To(Equal(1.0))
	g.Expect(testutil.ToFloat64(r.fetchedBytes.WithLabelValues("oci"))).To(Equal(120.0))
	g.Expect(testutil.ToFloat64(r.fetchErrors.WithLabelValues("url"))).To(Equal(1.0))
	g.Expect(testutil.CollectAndCount(r.steps)).To(Equal(1))

	r.Forget(aws())
	g.Expect(testutil.GatherAndCount(registry,
		"capstan_chart_bytes", "capstan_drift_total", "capstan_release_actions_total")).To(BeZero())
}

func TestNilRecorder(t *testing.T) {
	var r *Recorder
	r.InitCounters(aws())
	r.CountReleaseAction(aws(), ActionInstall, nil)
	r.CountDriftDetected(aws(), 1)
	r.ObserveFetch(SourceOCI, 1, nil)
	r.SetChartSize(aws(), 1)
	r.TimeStep(v1alpha2.CoreProviderType, StepCRDs)()
	r.Forget(aws())
}

func TestProviderCollector(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha2.AddToScheme(scheme)).To(Succeed())

	installed, contract := "v2.11.1", "v1beta1"
	ready, stalled := aws(), &v1alpha2.CoreProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: "cluster-api"},
	}
	ready.Status = v1alpha2.ProviderStatus{
		InstalledVersion: &installed, DesiredVersion: "v2.12.0", Contract: &contract,
		Release: &v1alpha2.ReleaseStatus{Name: "infrastructure-aws", Revision: 4},
	}
	conditions.MarkTrue(ready, v1alpha2.ReadyCondition, v1alpha2.HealthyReason, "well")

	ready.Status.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{
		Pending: &v1alpha2.PendingUpgrade{Version: "v2.11.3", Blocked: true},
		Last:    &v1alpha2.AutomaticUpgrade{Version: "v2.11.2", Result: v1alpha2.UpgradeFailed},
	}

	stalled.Status.MissingVariables = []string{"A", "B"}
	conditions.MarkStalled(stalled, v1alpha2.MissingVariablesReason, "A and B")
	conditions.MarkFalse(stalled, v1alpha2.ReadyCondition, v1alpha2.MissingVariablesReason, "A and B")

	others := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "others", Name: "cluster-api"}}
	notOthers := func(p client.Object) bool { return p.GetNamespace() != "others" }
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(ready, stalled, others).Build()

	const (
		aws  = `name="aws",namespace="capa-system",`
		core = `name="cluster-api",namespace="capi-system",`
	)

	expected := `
# HELP capstan_provider_automatic_upgrade Always 1; the labels are the version and the state of a provider's ` +
		`pending and last automatic upgrade.
# TYPE capstan_provider_automatic_upgrade gauge
capstan_provider_automatic_upgrade{` + aws + `state="Blocked",type="InfrastructureProvider",version="v2.11.3"} 1
capstan_provider_automatic_upgrade{` + aws + `state="Failed",type="InfrastructureProvider",version="v2.11.2"} 1
# HELP capstan_provider_condition 1 if the condition of a provider is True, 0 if it is False, absent or unknown.
# TYPE capstan_provider_condition gauge
capstan_provider_condition{condition="Ready",` + aws + `reason="Healthy",type="InfrastructureProvider"} 1
capstan_provider_condition{condition="Reconciling",` + aws + `reason="",type="InfrastructureProvider"} 0
capstan_provider_condition{condition="Stalled",` + aws + `reason="",type="InfrastructureProvider"} 0
capstan_provider_condition{condition="Ready",` + core + `reason="MissingVariables",type="CoreProvider"} 0
capstan_provider_condition{condition="Reconciling",` + core + `reason="",type="CoreProvider"} 0
capstan_provider_condition{condition="Stalled",` + core + `reason="MissingVariables",type="CoreProvider"} 1
# HELP capstan_provider_info Always 1; the labels are a provider's versions, contract and Helm release.
# TYPE capstan_provider_info gauge
capstan_provider_info{contract="",desired_version="",` + core + `release="",type="CoreProvider",version=""} 1
capstan_provider_info{contract="v1beta1",desired_version="v2.12.0",` + aws +
		`release="infrastructure-aws",type="InfrastructureProvider",version="v2.11.1"} 1
# HELP capstan_provider_missing_variables Variables that a provider needs and that are not set.
# TYPE capstan_provider_missing_variables gauge
capstan_provider_missing_variables{` + aws + `type="InfrastructureProvider"} 0
capstan_provider_missing_variables{` + core + `type="CoreProvider"} 2
# HELP capstan_provider_release_revision Current revision of a provider's Helm release.
# TYPE capstan_provider_release_revision gauge
capstan_provider_release_revision{` + aws + `type="InfrastructureProvider"} 4
capstan_provider_release_revision{` + core + `type="CoreProvider"} 0
`

	collector := NewProviderCollector(reader, notOthers)
	g.Expect(testutil.CollectAndCompare(collector, strings.NewReader(expected))).To(Succeed())
}
