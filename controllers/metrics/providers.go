package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// readTimeout limits a read from a cache, which is immediate except while the cache is being filled.
const readTimeout = 5 * time.Second

var (
	infoDesc = prometheus.NewDesc(
		"capstan_provider_info",
		"Always 1; the labels are a provider's versions, contract and Helm release.",
		withProviderLabels("version", "desired_version", "contract", "release"),
		nil,
	)
	revisionDesc = prometheus.NewDesc(
		"capstan_provider_release_revision",
		"Current revision of a provider's Helm release.",
		withProviderLabels(),
		nil,
	)
	conditionDesc = prometheus.NewDesc(
		"capstan_provider_condition",
		"1 if the condition of a provider is True, 0 if it is False, absent or unknown.",
		withProviderLabels("condition", "reason"),
		nil,
	)
	missingVariablesDesc = prometheus.NewDesc(
		"capstan_provider_missing_variables",
		"Variables that a provider needs and that are not set.",
		withProviderLabels(),
		nil,
	)
	automaticDesc = prometheus.NewDesc(
		"capstan_provider_automatic_upgrade",
		"Always 1; the labels are the version and the state of a provider's pending and last automatic upgrade.",
		withProviderLabels("version", "state"),
		nil,
	)
)

// States of an automatic upgrade that has not started. The others are those of v1alpha2.UpgradeResult.
const (
	statePending = "Pending"
	stateBlocked = "Blocked"
)

// exportedConditions are the conditions in capstan_provider_condition.
var exportedConditions = []string{
	v1alpha2.ReadyCondition, v1alpha2.ReconcilingCondition, v1alpha2.StalledCondition,
}

// providerCollector collects the metrics of providers.
type providerCollector struct {
	client  client.Reader
	include func(client.Object) bool
}

// NewProviderCollector returns a collector of the metrics of all providers to include. The client
// reads from a cache.
func NewProviderCollector(cached client.Reader, include func(client.Object) bool) prometheus.Collector {
	return &providerCollector{client: cached, include: include}
}

// Describe implements prometheus.Collector.
func (c *providerCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{infoDesc, revisionDesc, conditionDesc, missingVariablesDesc, automaticDesc} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector. It sends nothing before the cache has been started, and
// an error if the cache cannot be read.
func (c *providerCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()

		err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy)
		if notStarted := new(cache.ErrCacheNotStarted); errors.As(err, &notStarted) {
			return
		}

		if err != nil {
			metrics <- prometheus.NewInvalidMetric(infoDesc, err)
			return
		}

		for _, p := range list.GetItems() {
			if c.include(p) {
				collectProvider(metrics, p)
			}
		}
	}
}

// collectProvider sends the metrics of one provider.
func collectProvider(metrics chan<- prometheus.Metric, p v1alpha2.Provider) {
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labelsOf(p, labels...)...)
	}

	status := p.GetStatus()
	release := ptr.Deref(status.Release, v1alpha2.ReleaseStatus{})

	send(infoDesc, 1,
		ptr.Deref(status.InstalledVersion, ""), status.DesiredVersion, ptr.Deref(status.Contract, ""), release.Name)
	send(revisionDesc, float64(release.Revision))
	send(missingVariablesDesc, float64(len(status.MissingVariables)))

	for _, name := range exportedConditions {
		condition := ptr.Deref(meta.FindStatusCondition(p.GetConditions(), name), metav1.Condition{})

		value := 0.0
		if condition.Status == metav1.ConditionTrue {
			value = 1
		}

		send(conditionDesc, value, name, condition.Reason)
	}

	upgrade := ptr.Deref(status.AutomaticUpgrade, v1alpha2.AutomaticUpgradeStatus{})

	if pending := upgrade.Pending; pending != nil {
		state := statePending
		if pending.Blocked {
			state = stateBlocked
		}

		send(automaticDesc, 1, pending.Version, state)
	}

	if last := upgrade.Last; last != nil {
		send(automaticDesc, 1, last.Version, string(last.Result))
	}
}
