package values

import (
	"cmp"
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

// manager is the container of a controller manager.
type manager struct {
	*container
	*doubts
	// ignored describes the fields that have no effect.
	ignored []string
}

// set sets what the spec has, overriding the container's args.
func (m *manager) set(spec *v1alpha2.ManagerSpec) {
	for name, value := range sorted(spec.AdditionalArgs) {
		m.Args[trimDashes(name)] = value
		m.doubtFlag("additionalArgs["+name+"]", trimDashes(name))
	}

	if spec.Debug {
		doubted := len(m.found)

		m.setField("verbosity", debugVerbosity)
		m.setField("profilerAddress", debugProfilerAddress)

		for i := range m.found[doubted:] {
			m.found[doubted+i].Field = "debug"
		}
	}

	m.setField("syncPeriod", seconds(spec.SyncPeriod))
	m.setField("cacheNamespace", spec.CacheNamespace)
	m.setField("profilerAddress", spec.ProfilerAddress)

	if spec.Verbosity != nil && *spec.Verbosity != defaultVerbosity {
		m.setField("verbosity", number(spec.Verbosity))
	}

	if len(spec.FeatureGates) > 0 {
		m.FeatureGates = spec.FeatureGates
	}

	for gate := range sorted(spec.FeatureGates) {
		m.doubtGate("featureGates["+gate+"]", gate)
	}

	if spec.GracefulShutDown != nil {
		m.ignore("gracefulShutDown", noFlag)
	}

	m.setControllers(spec)
	m.setLeaderElection(spec.LeaderElection)
	m.setEndpoints(spec)
}

// noFlag is why a field has no effect on any manager.
const noFlag = "Cluster API's managers have no flag for it"

// setControllers sets the concurrency of single controllers, and then that of all others. The group of a
// kind, as in "AWSCluster.infrastructure.cluster.x-k8s.io", is not part of the flag.
func (m *manager) setControllers(spec *v1alpha2.ManagerSpec) {
	controller := cmp.Or(spec.Controller, &v1alpha2.ControllerSpec{})

	for groupKind, concurrency := range sorted(controller.GroupKindConcurrency) {
		kind, _, _ := strings.Cut(groupKind, ".")
		flag := strings.ToLower(kind) + concurrencySuffix
		m.Args[flag] = number(&concurrency)
		m.doubtFlag("controller.groupKindConcurrency["+groupKind+"]", flag)
	}

	m.setConcurrency(number(spec.MaxConcurrentReconciles))

	if controller.CacheSyncTimeout != nil {
		m.ignore("controller.cacheSyncTimeout", noFlag)
	}

	if controller.RecoverPanic != nil {
		m.ignore("controller.recoverPanic", noFlag)
	}
}

// setLeaderElection sets leader election. If that is disabled, its other fields are not used.
func (m *manager) setLeaderElection(spec *v1alpha2.LeaderElection) {
	if spec == nil {
		return
	}

	if spec.ResourceLock != "" && spec.ResourceLock != "leases" {
		m.ignore("leaderElection.resourceLock", noFlag)
	}

	if spec.LeaderElect != nil {
		m.setField("leaderElection.leaderElect", strconv.FormatBool(*spec.LeaderElect))

		if !*spec.LeaderElect {
			return
		}
	}

	switch {
	case spec.ResourceName != "" && spec.ResourceNamespace != "":
		m.setField("leaderElection.resourceName", spec.ResourceNamespace+"/"+spec.ResourceName)
	case spec.ResourceNamespace != "":
		m.ignore("leaderElection.resourceNamespace without resourceName", noFlag)
	default:
		m.setField("leaderElection.resourceName", spec.ResourceName)
	}

	m.setField("leaderElection.leaseDuration", seconds(spec.LeaseDuration))
	m.setField("leaderElection.renewDeadline", seconds(spec.RenewDeadline))
	m.setField("leaderElection.retryPeriod", seconds(spec.RetryPeriod))
}

// setEndpoints sets where metrics, probes and webhooks are served.
func (m *manager) setEndpoints(spec *v1alpha2.ManagerSpec) {
	if metrics := spec.Metrics; metrics != nil {
		m.setField("metrics.bindAddress", metrics.BindAddress)
		m.setField("metrics.diagnosticsAddress", metrics.DiagnosticsAddress)

		// False is the default of managers, and old ones do not have the flag.
		if metrics.InsecureDiagnostics {
			m.setField("metrics.insecureDiagnostics", "true")
		}
	}

	if health := spec.Health; health != nil {
		m.setField("health.healthProbeBindAddress", health.HealthProbeBindAddress)
		m.LivenessProbe = probeAt(health.LivenessEndpointName)
		m.ReadinessProbe = probeAt(health.ReadinessEndpointName)
	}

	if webhook := spec.Webhook; webhook != nil {
		m.setField("webhook.host", webhook.Host)
		m.setField("webhook.port", number(webhook.Port))
		m.setField("webhook.certDir", webhook.CertDir)
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

// seconds formats a duration, in seconds if it is a multiple of one; nil is empty, and so is zero, which
// programs send for durations that are not set.
func seconds(d *metav1.Duration) string {
	if d == nil || d.Duration == 0 {
		return ""
	}

	if d.Duration%time.Second == 0 {
		return fmt.Sprintf("%ds", d.Duration/time.Second)
	}

	return d.Duration.String()
}
