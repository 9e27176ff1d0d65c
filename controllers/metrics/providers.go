package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// readTimeout bounds a read of resources from a cache, which answers at once unless it is still
// being filled.
const readTimeout = 5 * time.Second

var (
	infoDesc = prometheus.NewDesc(
		"capstan_provider_info",
		"Always 1; the labels tell a provider's versions, contract and Helm release.",
		append(
			providerLabels[:len(providerLabels):len(providerLabels)],
			"version",
			"desired_version",
			"contract",
			"release",
		),
		nil,
	)
	revisionDesc = prometheus.NewDesc(
		"capstan_provider_release_revision",
		"Current revision of a provider's Helm release.",
		providerLabels,
		nil,
	)
	conditionDesc = prometheus.NewDesc("capstan_provider_condition",
		"1 if the condition of a provider is True, 0 if it is False, absent or unknown.",
		append(providerLabels[:len(providerLabels):len(providerLabels)], "condition", "reason"), nil)
	missingDesc = prometheus.NewDesc(
		"capstan_provider_missing_variables",
		"Variables without which a provider cannot be installed.",
		providerLabels,
		nil,
	)
)

// told are the conditions that are told of each provider.
var told = []string{v1alpha2.ReadyCondition, v1alpha2.ReconcilingCondition, v1alpha2.StalledCondition}

// providers tells of the wanted providers whenever Prometheus asks.
type providers struct {
	reader client.Reader
	want   func(client.Object) bool
}

// Providers tells of the wanted ones of all providers there are, as the reader, a cache, knows
// them.
func Providers(reader client.Reader, want func(client.Object) bool) prometheus.Collector {
	return &providers{reader, want}
}

// Describe sends the descriptions.
func (c *providers) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{infoDesc, revisionDesc, conditionDesc, missingDesc} {
		descriptions <- d
	}
}

// Collect sends what is true now: nothing before the cache has started, and an error if it cannot
// be read.
func (c *providers) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()

		err := c.reader.List(ctx, list, client.UnsafeDisableDeepCopy)
		if starting := new(cache.ErrCacheNotStarted); errors.As(err, &starting) {
			return
		}

		if err != nil {
			metrics <- prometheus.NewInvalidMetric(infoDesc, err)
			return
		}

		for _, p := range list.GetItems() {
			if c.want(p) {
				tell(metrics, p)
			}
		}
	}
}

func tell(metrics chan<- prometheus.Metric, p v1alpha2.Provider) {
	labels, status := labelsOf(p), p.GetStatus()
	send := func(desc *prometheus.Desc, value float64, more ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append(labels[:len(labels):len(labels)], more...)...)
	}

	release := v1alpha2.ReleaseStatus{}
	if status.Release != nil {
		release = *status.Release
	}

	send(infoDesc, 1, text(status.InstalledVersion), status.DesiredVersion, text(status.Contract), release.Name)
	send(revisionDesc, float64(release.Revision))
	send(missingDesc, float64(len(status.MissingVariables)))

	for _, name := range told {
		condition := conditions.Get(p, name)
		if condition == nil {
			condition = &metav1.Condition{}
		}

		value := 0.0
		if condition.Status == metav1.ConditionTrue {
			value = 1
		}

		send(conditionDesc, value, name, condition.Reason)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}

	return *s
}
