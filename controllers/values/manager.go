package values

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// defaultVerbosity is the CRD's default, which a person who set it cannot be told from one who did
// not: it sets no flag.
const defaultVerbosity = 1

// What manager.debug sets.
const (
	debugVerbosity       = "5"
	debugProfilerAddress = "localhost:6060"
)

// manage takes over what the spec says of the container's manager, over its arguments. The flags
// are cluster-api-operator's. It gives the fields without a flag that are set.
func (c *container) manage(m *v1alpha2.ManagerSpec) (ignored []string) {
	for flag, value := range sorted(m.AdditionalArgs) {
		c.Args[bare(flag)] = value
	}

	if m.Debug {
		c.flag("v", debugVerbosity)
		c.flag("profiler-address", debugProfilerAddress)
	}

	c.flag("sync-period", seconds(m.SyncPeriod))
	c.flag("namespace", m.CacheNamespace)
	c.flag("profiler-address", m.ProfilerAddress)
	c.flag("max-concurrent-reconciles", number(m.MaxConcurrentReconciles))

	if m.Verbosity != nil && *m.Verbosity != defaultVerbosity {
		c.flag("v", number(m.Verbosity))
	}

	if len(m.FeatureGates) > 0 {
		c.FeatureGates = m.FeatureGates
	}

	if m.GracefulShutDown != nil {
		ignored = append(ignored, "gracefulShutDown")
	}

	ignored = append(ignored, c.controllers(m.Controller)...)
	ignored = append(ignored, c.elect(m.LeaderElection)...)
	c.endpoints(m)

	return ignored
}

// controllers sets the concurrency of single controllers. A group, as in
// "AWSCluster.infrastructure.cluster.x-k8s.io", is no part of the flag.
func (c *container) controllers(spec *v1alpha2.ControllerSpec) (ignored []string) {
	if spec == nil {
		return nil
	}

	for groupKind, concurrency := range sorted(spec.GroupKindConcurrency) {
		kind, _, _ := strings.Cut(groupKind, ".")
		c.flag(strings.ToLower(kind)+"-concurrency", number(&concurrency))
	}

	if spec.CacheSyncTimeout != nil {
		ignored = append(ignored, "controller.cacheSyncTimeout")
	}

	if spec.RecoverPanic != nil {
		ignored = append(ignored, "controller.recoverPanic")
	}

	return ignored
}

// elect sets leader election. When it is off, nothing else about it matters.
func (c *container) elect(spec *v1alpha2.LeaderElection) (ignored []string) {
	if spec == nil {
		return nil
	}

	if spec.ResourceLock != "" && spec.ResourceLock != "leases" {
		ignored = append(ignored, "leaderElection.resourceLock")
	}

	if spec.LeaderElect != nil {
		c.flag("leader-elect", strconv.FormatBool(*spec.LeaderElect))

		if !*spec.LeaderElect {
			return ignored
		}
	}

	switch {
	case spec.ResourceName != "" && spec.ResourceNamespace != "":
		c.flag("leader-election-id", spec.ResourceNamespace+"/"+spec.ResourceName)
	case spec.ResourceName != "":
		c.flag("leader-election-id", spec.ResourceName)
	case spec.ResourceNamespace != "":
		ignored = append(ignored, "leaderElection.resourceNamespace without resourceName")
	}

	c.flag("leader-elect-lease-duration", seconds(spec.LeaseDuration))
	c.flag("leader-elect-renew-deadline", seconds(spec.RenewDeadline))
	c.flag("leader-elect-retry-period", seconds(spec.RetryPeriod))

	return ignored
}

// endpoints sets where metrics, probes and webhooks are served.
func (c *container) endpoints(m *v1alpha2.ManagerSpec) {
	if metrics := m.Metrics; metrics != nil {
		c.flag("metrics-bind-addr", metrics.BindAddress)
		c.flag("diagnostics-address", metrics.DiagnosticsAddress)
		// false is what a manager does unless told otherwise, and old ones do not know the flag
		if metrics.InsecureDiagnostics {
			c.flag("insecure-diagnostics", "true")
		}
	}

	if health := m.Health; health != nil {
		c.flag("health-addr", health.HealthProbeBindAddress)
		c.LivenessProbe = probeAt(health.LivenessEndpointName)
		c.ReadinessProbe = probeAt(health.ReadinessEndpointName)
	}

	if webhook := m.Webhook; webhook != nil {
		c.flag("webhook-host", webhook.Host)
		c.flag("webhook-port", number(webhook.Port))
		c.flag("webhook-cert-dir", webhook.CertDir)
	}
}

// flag sets a flag unless the value is empty.
func (c *container) flag(name, value string) {
	if value != "" {
		c.Args[name] = value
	}
}

// probeAt changes the path of a probe, unless the endpoint's name is empty.
func probeAt(endpoint string) *probe {
	if endpoint == "" {
		return nil
	}

	return &probe{httpGet{Path: "/" + strings.TrimPrefix(endpoint, "/")}}
}

// number is empty for nil.
func number(n *int32) string {
	if n == nil {
		return ""
	}

	return strconv.Itoa(int(*n))
}

// seconds writes a duration in whole seconds if it is, and is empty for nil.
func seconds(d *metav1.Duration) string {
	switch {
	case d == nil:
		return ""
	case d.Duration%time.Second == 0:
		return fmt.Sprintf("%ds", d.Duration/time.Second)
	}

	return d.Duration.String()
}
