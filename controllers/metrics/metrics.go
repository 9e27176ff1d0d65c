// Package metrics is what Prometheus can ask the operator, beside what controller-runtime,
// client-go and Go tell of themselves. What is true of a provider now is read from the resources
// when Prometheus asks (Providers); what has happened is counted as it happens (Recorder).
// docs/metrics.md describes each metric.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Step is a step of a reconcile.
type Step string

// The steps, in their order.
const (
	StepChart     Step = "chart"
	StepValues    Step = "values"
	StepPreflight Step = "preflight"
	StepCRDs      Step = "crds"
	StepRelease   Step = "release"
	StepHealth    Step = "health"
	StepDrift     Step = "drift"
	StepRemove    Step = "remove"
)

// Action is what Helm did with a release.
type Action string

// The actions.
const (
	Install   Action = "install"
	Upgrade   Action = "upgrade"
	Rollback  Action = "rollback"
	Uninstall Action = "uninstall"
)

// Source is a kind of source that components come from.
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

// Sources lists all sources.
func Sources() []Source {
	return []Source{SourceConfigMap, SourceOCI, SourceURL, SourceHTTP, SourceDirectory, SourceImage}
}

// providerLabels tell providers apart.
var providerLabels = []string{"type", "namespace", "name"}

func labelsOf(p v1alpha2.Provider) []string {
	return []string{string(p.ProviderType()), p.GetNamespace(), p.GetName()}
}

// Recorder counts what happens. A nil Recorder counts nothing, so that nobody needs one. All
// methods may be called concurrently.
type Recorder struct {
	steps       *prometheus.HistogramVec
	releases    *prometheus.CounterVec
	drifts      *prometheus.CounterVec
	deletions   *prometheus.CounterVec
	fetches     *prometheus.CounterVec
	fetchErrors *prometheus.CounterVec
	charts      *prometheus.GaugeVec
	waiting     prometheus.Gauge
}

// NewRecorder registers the metrics; version is the operator's own. It panics, as registering does,
// if it is called twice for a registry.
func NewRecorder(registry prometheus.Registerer, version string) *Recorder {
	build := prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: "capstan_build_info", Help: "Always 1; the label is the operator's version."},
		[]string{"version"},
	)
	build.WithLabelValues(version).Set(1)

	r := &Recorder{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capstan_step_duration_seconds", Help: "How long a step of a reconcile took.",
			Buckets: []float64{.001, .005, .02, .1, .5, 1, 2, 5, 10, 30, 60},
		}, []string{"type", "step"}),
		releases: counter(
			"capstan_release_actions_total",
			"Actions on a provider's Helm release, by what was done and whether it was done.",
			"action",
			"result",
		),
		drifts: counter(
			"capstan_drift_total",
			"Changes by others of a provider's objects that were noticed, and those that were undone.",
			"outcome",
		),
		deletions: counter(
			"capstan_crd_deletions_total",
			"CustomResourceDefinitions of a provider that somebody deleted while the provider stays.",
		),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capstan_fetch_bytes_total", Help: "Bytes of components and metadata read from sources.",
		}, []string{"source"}),
		fetchErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capstan_fetch_errors_total", Help: "Reads from sources that failed.",
		}, []string{"source"}),
		charts: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "capstan_chart_bytes", Help: "Size of the archive of a provider's current chart."},
			providerLabels,
		),
	}

	r.waiting = prometheus.NewGauge(
		prometheus.GaugeOpts{
			Name: "capstan_charts_waiting",
			Help: "Charts in the cluster that are still to be pushed to the chart repository.",
		},
	)
	for _, source := range Sources() {
		r.fetches.WithLabelValues(string(source))
		r.fetchErrors.WithLabelValues(string(source))
	}

	registry.MustRegister(build, r.steps, r.releases, r.drifts, r.deletions, r.fetches, r.fetchErrors, r.charts, r.waiting)

	return r
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(
		prometheus.CounterOpts{Name: name, Help: help},
		append(providerLabels[:len(providerLabels):len(providerLabels)], labels...),
	)
}

// Step times a step until the function that it returns is called:
//
//	defer r.Metrics.Step(r.Type, metrics.StepCRDs)()
func (r *Recorder) Step(t v1alpha2.ProviderType, step Step) func() {
	if r == nil {
		return func() {}
	}

	begin := time.Now()

	return func() { r.steps.WithLabelValues(string(t), string(step)).Observe(time.Since(begin).Seconds()) }
}

// Known makes a provider's counters begin at 0, so that Prometheus sees the first increase. It
// costs next to nothing when repeated.
func (r *Recorder) Known(p v1alpha2.Provider) {
	if r == nil {
		return
	}

	for _, action := range []Action{Install, Upgrade, Rollback} {
		for _, result := range []string{succeeded, failed} {
			r.releases.WithLabelValues(append(labelsOf(p), string(action), result)...)
		}
	}

	for _, outcome := range []string{detected, corrected} {
		r.drifts.WithLabelValues(append(labelsOf(p), outcome)...)
	}

	r.deletions.WithLabelValues(labelsOf(p)...)
}

// CRDDeleted counts a CustomResourceDefinition that somebody deletes while its provider stays.
func (r *Recorder) CRDDeleted(p v1alpha2.Provider) {
	if r != nil {
		r.deletions.WithLabelValues(labelsOf(p)...).Inc()
	}
}

// Forget drops all that is told of a provider that is gone.
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
	r.deletions.DeletePartialMatch(labels)
	r.charts.DeletePartialMatch(labels)
}

const (
	succeeded, failed   = "succeeded", "failed"
	detected, corrected = "detected", "corrected"
)

// Release counts an action on the provider's release; err is how it ended.
func (r *Recorder) Release(p v1alpha2.Provider, action Action, err error) {
	if r == nil {
		return
	}

	result := succeeded
	if err != nil {
		result = failed
	}

	r.releases.WithLabelValues(append(labelsOf(p), string(action), result)...).Inc()
}

// DriftDetected counts objects of the provider that somebody has changed or deleted.
func (r *Recorder) DriftDetected(p v1alpha2.Provider, objects int) { r.drift(p, detected, objects) }

// DriftCorrected counts objects of the provider that are again as they were released.
func (r *Recorder) DriftCorrected(p v1alpha2.Provider, objects int) { r.drift(p, corrected, objects) }

func (r *Recorder) drift(p v1alpha2.Provider, outcome string, objects int) {
	if r != nil {
		r.drifts.WithLabelValues(append(labelsOf(p), outcome)...).Add(float64(objects))
	}
}

// Fetched counts a read from a source: its bytes, or that it failed.
func (r *Recorder) Fetched(source Source, bytes int, err error) {
	switch {
	case r == nil:
	case err != nil:
		r.fetchErrors.WithLabelValues(string(source)).Inc()
	default:
		r.fetches.WithLabelValues(string(source)).Add(float64(bytes))
	}
}

// ChartStored tells the size in bytes of the archive of the provider's current chart.
func (r *Recorder) ChartStored(p v1alpha2.Provider, bytes int) {
	if r != nil {
		r.charts.WithLabelValues(labelsOf(p)...).Set(float64(bytes))
	}
}

// ChartsWaiting tells how many charts are still to be pushed to the chart repository.
func (r *Recorder) ChartsWaiting(charts int) {
	if r != nil {
		r.waiting.Set(float64(charts))
	}
}
