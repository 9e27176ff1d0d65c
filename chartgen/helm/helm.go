// Package helm names what the operator uses of Helm's library and what differs between its major versions: the types of
// charts, releases and their records, rendering, and the storage of records.
package helm

import (
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	helmtime "helm.sh/helm/v3/pkg/time"
)

type (
	// Chart is a chart as Helm loads and stores it.
	Chart = chart.Chart
	// Metadata is what a chart's Chart.yaml says.
	Metadata = chart.Metadata
	// File is a file in a chart, such as a template.
	File = chart.File
	// BufferedFile is a file of a chart that is loaded.
	BufferedFile = loader.BufferedFile
)

// ReleaseOptions describe the revision to templates.
type ReleaseOptions = chartutil.ReleaseOptions

type (
	// Release is a revision of a release as Helm records it.
	Release = release.Release
	// Info is what has become of a revision.
	Info = release.Info
	// Status is the status of a revision.
	Status = release.Status
	// Hook is an object that is created at a certain time, and not part of the manifest.
	Hook = release.Hook
	// HookEvent is such a time.
	HookEvent = release.HookEvent
	// HookDeletePolicy says when the object of a hook is deleted.
	HookDeletePolicy = release.HookDeletePolicy
	// Time is a time in a record.
	Time = helmtime.Time
)

// The statuses of a revision.
const (
	StatusDeployed        = release.StatusDeployed
	StatusSuperseded      = release.StatusSuperseded
	StatusFailed          = release.StatusFailed
	StatusUninstalling    = release.StatusUninstalling
	StatusPendingInstall  = release.StatusPendingInstall
	StatusPendingUpgrade  = release.StatusPendingUpgrade
	StatusPendingRollback = release.StatusPendingRollback
)

// The annotation by which a chart, or a user, keeps an object when its release is removed.
const (
	ResourcePolicyAnnotation = "helm.sh/resource-policy"
	KeepPolicy               = "keep"
)

// InstallOrder is the order in which kinds are installed.
var InstallOrder = releaseutil.InstallOrder

// At returns a time as records have it.
func At(t time.Time) Time { return Time{Time: t} }

// Load returns the chart that consists of the files.
func Load(files []*BufferedFile) (*Chart, error) { return loader.LoadFiles(files) }

// Render checks the values by the chart's schema and renders its templates, without DNS and without a cluster. It
// returns them by path.
func Render(c *Chart, values map[string]any, options ReleaseOptions) (map[string]string, error) {
	input, err := chartutil.ToRenderValues(c, values, options, nil)
	if err != nil {
		return nil, err
	}

	return new(engine.Engine).Render(c, input)
}
