package v1alpha2

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagerSpec sets flags of a provider's controller manager. A field here takes precedence over the
// same flag in a container's `args`. Where a field has several flags, or only some managers have its
// flag, the flag that the provider's components set is used. If they set none, the field is ignored,
// because a manager does not start with an unknown flag, and an event says so.
//
// +kubebuilder:validation:XValidation:rule="!has(self.debug) || !self.debug || !(has(self.syncPeriod) || has(self.leaderElection) || has(self.cacheNamespace) || has(self.gracefulShutDown) || has(self.controller))",message="debug cannot be combined with syncPeriod, leaderElection, cacheNamespace, gracefulShutDown or controller"
// +kubebuilder:validation:XValidation:rule="!has(self.debug) || !self.debug || !(has(self.metrics) || has(self.health) || has(self.webhook) || has(self.profilerAddress))",message="debug cannot be combined with metrics, health, webhook or profilerAddress"
// +kubebuilder:validation:XValidation:rule="!has(self.debug) || !self.debug || !(has(self.maxConcurrentReconciles) || has(self.featureGates) || has(self.additionalArgs) || has(self.verbosity) && self.verbosity != 1)",message="debug cannot be combined with maxConcurrentReconciles, featureGates, additionalArgs or verbosity"
type ManagerSpec struct {
	// syncPeriod is the interval at which all objects are reconciled even if nothing changes, e.g. `10m`. Flag:
	// --sync-period.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be greater than 0s, e.g. 10m"
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// leaderElection configures which of several replicas is active. Flags: --leader-elect or
	// --enable-leader-election, --leader-elect-* and --leader-election-id.
	// +optional
	LeaderElection *LeaderElection `json:"leaderElection,omitempty"`

	// cacheNamespace restricts the manager to objects of one namespace. Default: all namespaces. Flag:
	// --namespace.
	// +optional
	CacheNamespace string `json:"cacheNamespace,omitempty"`

	// gracefulShutDown is how long the manager waits for running reconciles when it is stopped, e.g. `30s`. It
	// is ignored: Cluster API's managers have no flag for it.
	// +optional
	GracefulShutDown *metav1.Duration `json:"gracefulShutDown,omitempty"`

	// controller configures the controllers inside the manager.
	// +optional
	Controller *ControllerSpec `json:"controller,omitempty"`

	// metrics configures the metrics endpoint.
	// +optional
	Metrics *MetricsSpec `json:"metrics,omitempty"`

	// health configures the liveness and readiness endpoints.
	// +optional
	Health *HealthSpec `json:"health,omitempty"`

	// webhook configures the webhook server.
	// +optional
	Webhook *WebhookSpec `json:"webhook,omitempty"`

	// profilerAddress is the address that serves pprof, e.g. `localhost:6060`. Default: none. Flag:
	// --profiler-address.
	// +optional
	ProfilerAddress string `json:"profilerAddress,omitempty"`

	// maxConcurrentReconciles is how many objects each controller reconciles concurrently, unless the
	// controller's own flag is set. Flag: --max-concurrent-reconciles, or else all that end in -concurrency.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConcurrentReconciles *int32 `json:"maxConcurrentReconciles,omitempty"`

	// verbosity is the log level; higher values log more. The default 1 keeps that of the components. Flag:
	// --v.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Verbosity *int32 `json:"verbosity,omitempty"`

	// debug sets verbosity to 5 and profilerAddress to `localhost:6060`. It cannot be combined with other
	// fields. Default: false.
	// +optional
	Debug bool `json:"debug,omitempty"`

	// featureGates enable or disable features, e.g. `MachinePool: true`. Others are as in the components. Flag:
	// --feature-gates.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// additionalArgs are other flags to set, including the dashes, e.g. `--awscluster-concurrency: "12"`. They
	// take precedence over a container's `args`, but not over the other fields here.
	// +optional
	AdditionalArgs map[string]string `json:"additionalArgs,omitempty"`
}

// LeaderElection configures which of several replicas is active.
type LeaderElection struct {
	// leaderElect enables leader election.
	// +optional
	LeaderElect *bool `json:"leaderElect,omitempty"`

	// leaseDuration is how long a replica waits after the leader's last renewal before it tries to take over,
	// e.g. `15s`. Default, also of `0s`: the manager's own.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative, e.g. 15s"
	LeaseDuration *metav1.Duration `json:"leaseDuration,omitempty"`

	// renewDeadline is how long the leader retries to renew its lease before it gives up, e.g. `10s`. It must
	// be shorter than leaseDuration. Default, also of `0s`: the manager's own.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative, e.g. 10s"
	RenewDeadline *metav1.Duration `json:"renewDeadline,omitempty"`

	// retryPeriod is the time between attempts to acquire or renew the lease, e.g. `2s`. Default, also of `0s`:
	// the manager's own.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must not be negative, e.g. 2s"
	RetryPeriod *metav1.Duration `json:"retryPeriod,omitempty"`

	// resourceLock is the kind of the lock. Any value but `leases` is ignored.
	// +optional
	ResourceLock string `json:"resourceLock,omitempty"`

	// resourceName is the name of the lock.
	// +optional
	ResourceName string `json:"resourceName,omitempty"`

	// resourceNamespace is the namespace of the lock.
	// +optional
	ResourceNamespace string `json:"resourceNamespace,omitempty"`
}

// ControllerSpec configures the controllers inside a manager.
type ControllerSpec struct {
	// groupKindConcurrency is how many objects of a kind are reconciled concurrently, e.g. `AWSCluster: 12`.
	// Flag: the kind's own, e.g. --awscluster-concurrency.
	// +optional
	GroupKindConcurrency map[string]int32 `json:"groupKindConcurrency,omitempty"`

	// cacheSyncTimeout is how long a controller waits for its cache to sync, in nanoseconds. It is ignored:
	// Cluster API's managers have no flag for it.
	// +optional
	CacheSyncTimeout *time.Duration `json:"cacheSyncTimeout,omitempty"`

	// recoverPanic makes controllers recover from panics. It is ignored: Cluster API's managers have no flag
	// for it.
	// +optional
	RecoverPanic *bool `json:"recoverPanic,omitempty"`
}

// MetricsSpec configures a manager's metrics endpoint.
type MetricsSpec struct {
	// bindAddress is the address that serves metrics, e.g. `:8080`; `0` disables them. Flag:
	// --metrics-bind-addr, --metrics-bind-address, --metrics-addr or --diagnostics-address.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`

	// diagnosticsAddress is the address that serves metrics and other diagnostics over HTTPS, with
	// authorization, e.g. `:8443`. Flag: --diagnostics-address.
	// +optional
	DiagnosticsAddress string `json:"diagnosticsAddress,omitempty"`

	// insecureDiagnostics serves diagnostics over plain HTTP, without authorization. Default: false. Flag:
	// --insecure-diagnostics.
	// +optional
	InsecureDiagnostics bool `json:"insecureDiagnostics,omitempty"`
}

// HealthSpec configures a manager's liveness and readiness endpoints.
type HealthSpec struct {
	// healthProbeBindAddress is the address that serves the probes, e.g. `:9440`. Flag: --health-addr or
	// --health-probe-bind-address.
	// +optional
	HealthProbeBindAddress string `json:"healthProbeBindAddress,omitempty"`

	// readinessEndpointName is the path of the readiness probe, e.g. `readyz`.
	// +optional
	ReadinessEndpointName string `json:"readinessEndpointName,omitempty"`

	// livenessEndpointName is the path of the liveness probe, e.g. `healthz`.
	// +optional
	LivenessEndpointName string `json:"livenessEndpointName,omitempty"`
}

// WebhookSpec configures a manager's webhook server.
type WebhookSpec struct {
	// port of the webhook server, e.g. 9443. Flag: --webhook-port.
	// +optional
	Port *int32 `json:"port,omitempty"`

	// host is the address that the webhook server listens on. Flag: --webhook-host.
	// +optional
	Host string `json:"host,omitempty"`

	// certDir is the folder with the server's certificate `tls.crt` and key `tls.key`. Flag:
	// --webhook-cert-dir.
	// +optional
	CertDir string `json:"certDir,omitempty"`
}
