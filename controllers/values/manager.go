package values

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// defaultVerbosity is the CRD's default. It sets no flag, because it looks the same whether a user
// has set it or not.
const defaultVerbosity = 1

// The flags that manager.debug sets.
const (
	debugVerbosity       = "5"
	debugProfilerAddress = "localhost:6060"
)

// setManager sets what the spec has, overriding the container's args. The flags are those of
// cluster-api-operator. It returns the fields that are set but have no flag.
func (c *container) setManager(m *v1alpha2.ManagerSpec) (ignored []string) {
	for flag, value := range sorted(m.AdditionalArgs) {
		c.Args[trimDashes(flag)] = value
	}

	if m.Debug {
		c.setFlag("v", debugVerbosity)
		c.setFlag("profiler-address", debugProfilerAddress)
	}

	c.setFlag("sync-period", seconds(m.SyncPeriod))
	c.setFlag("namespace", m.CacheNamespace)
	c.setFlag("profiler-address", m.ProfilerAddress)
	c.setFlag("max-concurrent-reconciles", number(m.MaxConcurrentReconciles))

	if m.Verbosity != nil && *m.Verbosity != defaultVerbosity {
		c.setFlag("v", number(m.Verbosity))
	}

	if len(m.FeatureGates) > 0 {
		c.FeatureGates = m.FeatureGates
	}

	if m.GracefulShutDown != nil {
		ignored = append(ignored, "gracefulShutDown")
	}

	ignored = append(ignored, c.setControllers(m.Controller)...)
	ignored = append(ignored, c.setLeaderElection(m.LeaderElection)...)
	c.setEndpoints(m)

	return ignored
}

// setControllers sets the concurrency of single controllers. The group of a kind, as in
// "AWSCluster.infrastructure.cluster.x-k8s.io", is not part of the flag. It returns the fields that
// are set but have no flag.
func (c *container) setControllers(spec *v1alpha2.ControllerSpec) (ignored []string) {
	if spec == nil {
		return nil
	}

	for groupKind, concurrency := range sorted(spec.GroupKindConcurrency) {
		kind, _, _ := strings.Cut(groupKind, ".")
		c.setFlag(strings.ToLower(kind)+"-concurrency", number(&concurrency))
	}

	if spec.CacheSyncTimeout != nil {
		ignored = append(ignored, "controller.cacheSyncTimeout")
	}

	if spec.RecoverPanic != nil {
		ignored = append(ignored, "controller.recoverPanic")
	}

	return ignored
}

// setLeaderElection sets leader election. If that is disabled, its other fields are not used. It
// returns the fields that are set but have no flag.
func (c *container) setLeaderElection(spec *v1alpha2.LeaderElection) (ignored []string) {
	if spec == nil {
		return nil
	}

	if spec.ResourceLock != "" && spec.ResourceLock != "leases" {
		ignored = append(ignored, "leaderElection.resourceLock")
	}

	if spec.LeaderElect != nil {
		c.setFlag("leader-elect", strconv.FormatBool(*spec.LeaderElect))

		if !*spec.LeaderElect {
			return ignored
		}
	}

	switch {
	case spec.ResourceName != "" && spec.ResourceNamespace != "":
		c.setFlag("leader-election-id", spec.ResourceNamespace+"/"+spec.ResourceName)
	case spec.ResourceName != "":
		c.setFlag("leader-election-id", spec.ResourceName)
	case spec.ResourceNamespace != "":
		ignored = append(ignored, "leaderElection.resourceNamespace without resourceName")
	}

	c.setFlag("leader-elect-lease-duration", seconds(spec.LeaseDuration))
	c.setFlag("leader-elect-renew-deadline", seconds(spec.RenewDeadline))
	c.setFlag("leader-elect-retry-period", seconds(spec.RetryPeriod))

	return ignored
}

// setEndpoints sets where metrics, probes and webhooks are served.
func (c *container) setEndpoints(m *v1alpha2.ManagerSpec) {
	if metrics := m.Metrics; metrics != nil {
		c.setFlag("metrics-bind-addr", metrics.BindAddress)
		c.setFlag("diagnostics-address", metrics.DiagnosticsAddress)

		// False is the default of managers, and old ones do not have the flag.
		if metrics.InsecureDiagnostics {
			c.setFlag("insecure-diagnostics", "true")
		}
	}

	if health := m.Health; health != nil {
		c.setFlag("health-addr", health.HealthProbeBindAddress)
		c.LivenessProbe = probeAt(health.LivenessEndpointName)
		c.ReadinessProbe = probeAt(health.ReadinessEndpointName)
	}

	if webhook := m.Webhook; webhook != nil {
		c.setFlag("webhook-host", webhook.Host)
		c.setFlag("webhook-port", number(webhook.Port))
		c.setFlag("webhook-cert-dir", webhook.CertDir)
	}
}

// setFlag sets a flag unless the value is empty.
func (c *container) setFlag(name, value string) {
	if value != "" {
		c.Args[name] = value
	}
}

// probeAt returns a change of a probe's path; nil if the endpoint's name is empty.
func probeAt(endpoint string) *probe {
	if endpoint == "" {
		return nil
	}

	return &probe{httpGet{Path: "/" + strings.TrimPrefix(endpoint, "/")}}
}

// number formats an integer; nil is empty.
func number(n *int32) string {
	if n == nil {
		return ""
	}

	return strconv.Itoa(int(*n))
}

// seconds formats a duration, in seconds if it is a multiple of one; nil is empty.
func seconds(d *metav1.Duration) string {
	if d == nil {
		return ""
	}

	if d.Duration%time.Second == 0 {
		return fmt.Sprintf("%ds", d.Duration/time.Second)
	}

	return d.Duration.String()
}
