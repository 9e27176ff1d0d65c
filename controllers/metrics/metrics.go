// Package metrics provides the operator's own Prometheus metrics, in addition to those of
// controller-runtime, client-go and Go. The present state of providers is read from their resources
// whenever Prometheus asks (NewProviderCollector). What happens is counted as it happens (Recorder).
// docs/metrics.md describes each metric.
package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Step is a step of a reconcile.
type Step string

// The steps of a reconcile, in their order, and that of a deletion.
const (
	StepChart     Step = "chart"
	StepValues    Step = "values"
	StepPreflight Step = "preflight"
	StepCRDs      Step = "crds"
	StepRelease   Step = "release"
	StepDrift     Step = "drift"
	StepHealth    Step = "health"
	StepRemove    Step = "remove"
)

// Action is an action of Helm on a release.
type Action string

// The actions.
const (
	ActionInstall  Action = "install"
	ActionUpgrade  Action = "upgrade"
	ActionRollback Action = "rollback"
)

// Source is a type of source of components.
type Source string

// The sources, by their names in spec.fetchConfig.
const (
	SourceConfigMap Source = "selector"
	SourceOCI       Source = "oci"
	SourceURL       Source = "url"
	SourceHTTP      Source = "http"
	SourceDirectory Source = "directory"
	SourceImage     Source = "image"
)

// Sources returns all sources.
func Sources() []Source {
	return []Source{SourceConfigMap, SourceOCI, SourceURL, SourceHTTP, SourceDirectory, SourceImage}
}

// Values of the labels result and outcome.
const (
	resultSucceeded = "succeeded"
	resultFailed    = "failed"

	outcomeDetected  = "detected"
	outcomeCorrected = "corrected"
)

// providerLabels identify a provider.
var providerLabels = []string{"type", "namespace", "name"}

// withProviderLabels returns the labels that identify a provider, and others.
func withProviderLabels(others ...string) []string { return slices.Concat(providerLabels, others) }

// labelsOf returns the values of withProviderLabels for a provider.
func labelsOf(p v1alpha2.Provider, others ...string) []string {
	return slices.Concat([]string{string(p.ProviderType()), p.GetNamespace(), p.GetName()}, others)
}

// Recorder records what happens. A nil Recorder records nothing. All methods may be called
// concurrently.
type Recorder struct {
	steps        *prometheus.HistogramVec
	releases     *prometheus.CounterVec
	drifts       *prometheus.CounterVec
	crdDeletions *prometheus.CounterVec
	fetchedBytes *prometheus.CounterVec
	fetchErrors  *prometheus.CounterVec
	chartBytes   *prometheus.GaugeVec
}

// NewRecorder returns a Recorder whose metrics are registered; version is that of the operator. Like
// MustRegister it panics if it is called twice for a registry.
func NewRecorder(registry prometheus.Registerer, version string) *Recorder {
	build := gauge("capstan_build_info", "Always 1; the label is the operator's version.", "version")
	build.WithLabelValues(version).Set(1)

	r := &Recorder{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "capstan_step_duration_seconds",
			Help:    "Duration of a step of a reconcile.",
			Buckets: []float64{.001, .005, .02, .1, .5, 1, 2, 5, 10, 30, 60},
		}, []string{"type", "step"}),
		releases: counter("capstan_release_actions_total",
			"Actions on a provider's Helm release, by action and result.",
			withProviderLabels("action", "result")...),
		drifts: counter("capstan_drift_total",
			"Drifted objects of a provider that were detected, and those that were corrected.",
			withProviderLabels("outcome")...),
		crdDeletions: counter("capstan_crd_deletions_total",
			"CustomResourceDefinitions that were deleted while their provider was installed.",
			withProviderLabels()...),
		fetchedBytes: counter("capstan_fetch_bytes_total",
			"Bytes of components and metadata read from sources.", "source"),
		fetchErrors: counter("capstan_fetch_errors_total",
			"Failed reads from sources.", "source"),
		chartBytes: gauge("capstan_chart_bytes",
			"Size of the archive of a provider's current chart.", withProviderLabels()...),
	}

	for _, source := range Sources() {
		r.fetchedBytes.WithLabelValues(string(source))
		r.fetchErrors.WithLabelValues(string(source))
	}

	registry.MustRegister(
		build,
		r.steps,
		r.releases,
		r.drifts,
		r.crdDeletions,
		r.fetchedBytes,
		r.fetchErrors,
		r.chartBytes,
	)

	return r
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// TimeStep measures a step until the returned function is called:
//
//	defer r.Metrics.TimeStep(r.Type, metrics.StepCRDs)()
func (r *Recorder) TimeStep(t v1alpha2.ProviderType, step Step) (stop func()) {
	if r == nil {
		return func() {}
	}

	start := time.Now()

	return func() { r.ObserveStep(t, step, time.Since(start)) }
}

// ObserveStep records how long a step took.
func (r *Recorder) ObserveStep(t v1alpha2.ProviderType, step Step, took time.Duration) {
	if r != nil {
		r.steps.WithLabelValues(string(t), string(step)).Observe(took.Seconds())
	}
}

// InitCounters sets a provider's counters to 0 unless they exist, so that Prometheus sees the first
// increase. It is cheap to call it again.
func (r *Recorder) InitCounters(p v1alpha2.Provider) {
	if r == nil {
		return
	}

	for _, action := range []Action{ActionInstall, ActionUpgrade, ActionRollback} {
		for _, result := range []string{resultSucceeded, resultFailed} {
			r.releases.WithLabelValues(labelsOf(p, string(action), result)...)
		}
	}

	for _, outcome := range []string{outcomeDetected, outcomeCorrected} {
		r.drifts.WithLabelValues(labelsOf(p, outcome)...)
	}

	r.crdDeletions.WithLabelValues(labelsOf(p)...)
}

// Forget deletes all metrics of a provider that no longer exists.
func (r *Recorder) Forget(p v1alpha2.Provider) {
	if r == nil {
		return
	}

	labels := prometheus.Labels{}
	for i, value := range labelsOf(p) {
		labels[providerLabels[i]] = value
	}

	r.releases.DeletePartialMatch(labels)
	r.drifts.DeletePartialMatch(labels)
	r.crdDeletions.DeletePartialMatch(labels)
	r.chartBytes.DeletePartialMatch(labels)
}

// CountReleaseAction counts an action on a provider's release; err is its result.
func (r *Recorder) CountReleaseAction(p v1alpha2.Provider, action Action, err error) {
	if r == nil {
		return
	}

	result := resultSucceeded
	if err != nil {
		result = resultFailed
	}

	r.releases.WithLabelValues(labelsOf(p, string(action), result)...).Inc()
}

// CountCRDDeletion counts the deletion of a CRD whose provider is still installed.
func (r *Recorder) CountCRDDeletion(p v1alpha2.Provider) {
	if r != nil {
		r.crdDeletions.WithLabelValues(labelsOf(p)...).Inc()
	}
}

// CountDriftDetected counts objects of a provider that were changed or deleted by something else.
func (r *Recorder) CountDriftDetected(p v1alpha2.Provider, objects int) {
	r.countDrift(p, outcomeDetected, objects)
}

// CountDriftCorrected counts objects of a provider that match its release again.
func (r *Recorder) CountDriftCorrected(p v1alpha2.Provider, objects int) {
	r.countDrift(p, outcomeCorrected, objects)
}

func (r *Recorder) countDrift(p v1alpha2.Provider, outcome string, objects int) {
	if r != nil {
		r.drifts.WithLabelValues(labelsOf(p, outcome)...).Add(float64(objects))
	}
}

// ObserveFetch counts the bytes of a read from a source, or its failure.
func (r *Recorder) ObserveFetch(source Source, bytes int, err error) {
	switch {
	case r == nil:
	case err != nil:
		r.fetchErrors.WithLabelValues(string(source)).Inc()
	default:
		r.fetchedBytes.WithLabelValues(string(source)).Add(float64(bytes))
	}
}

// SetChartSize sets the size in bytes of the archive of a provider's current chart.
func (r *Recorder) SetChartSize(p v1alpha2.Provider, bytes int) {
	if r != nil {
		r.chartBytes.WithLabelValues(labelsOf(p)...).Set(float64(bytes))
	}
}
