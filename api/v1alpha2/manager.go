package v1alpha2

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagerSpec sets flags of a provider's controller manager. A field here wins over the same flag
// in a container's `args`.
//
// +kubebuilder:validation:XValidation:rule="!has(self.debug) || !self.debug || !(has(self.syncPeriod) || has(self.leaderElection) || has(self.cacheNamespace) || has(self.gracefulShutDown) || has(self.controller) || has(self.metrics) || has(self.health) || has(self.webhook) || has(self.profilerAddress) || has(self.maxConcurrentReconciles) || has(self.featureGates) || has(self.additionalArgs) || has(self.verbosity) && self.verbosity != 1)",message="debug chooses the manager's settings itself: set it alone or not at all"
type ManagerSpec struct {
	// syncPeriod is how often everything is reconciled even without a change, e.g. `10m`. Flag:
	// --sync-period.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than nothing, e.g. 10m"
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`

	// leaderElection configures which of several replicas is active. Flags: --leader-elect and
	// --leader-election-id or --leader-elect-*.
	// +optional
	LeaderElection *LeaderElection `json:"leaderElection,omitempty"`

	// cacheNamespace restricts the manager to objects of one namespace. Default: all namespaces.
	// Flag: --namespace.
	// +optional
	CacheNamespace string `json:"cacheNamespace,omitempty"`

	// gracefulShutDown is how long the manager waits for its work when it is stopped, e.g. `30s`;
	// `0s` does not wait, a negative duration waits without end. Ignored, with an event: Cluster
	// API's managers have no flag for it.
	// +optional
	GracefulShutDown *metav1.Duration `json:"gracefulShutDown,omitempty"`

	// controller configures the controllers inside the manager.
	// +optional
	Controller *ControllerSpec `json:"controller,omitempty"`

	// metrics configures the endpoint of metrics.
	// +optional
	Metrics *MetricsSpec `json:"metrics,omitempty"`

	// health configures the endpoints of the liveness and readiness probes.
	// +optional
	Health *HealthSpec `json:"health,omitempty"`

	// webhook configures the server of admission and conversion webhooks.
	// +optional
	Webhook *WebhookSpec `json:"webhook,omitempty"`

	// profilerAddress is where pprof is served, e.g. `localhost:6060`. Default: nowhere. Flag:
	// --profiler-address.
	// +optional
	ProfilerAddress string `json:"profilerAddress,omitempty"`

	// maxConcurrentReconciles is how many objects each controller reconciles at a time. Flag:
	// --max-concurrent-reconciles. A controller's own flag, e.g. --awscluster-concurrency, wins
	// over it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxConcurrentReconciles *int32 `json:"maxConcurrentReconciles,omitempty"`

	// verbosity of the log: the higher, the more is logged. The default 1 leaves what the
	// provider's release says. Flag: --v.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Verbosity *int32 `json:"verbosity,omitempty"`

	// debug sets verbosity 5 and profilerAddress `localhost:6060`. Nothing else may be set beside
	// it. Default: false.
	// +optional
	Debug bool `json:"debug,omitempty"`

	// featureGates switch features of the provider on or off, e.g. `MachinePool: true`. Gates that
	// are not named keep what the provider's release says. Flag: --feature-gates.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// additionalArgs are further flags, with their dashes, e.g. `--awscluster-concurrency: "12"`.
	// They replace those that the provider's release or a container's `args` sets; the other fields
	// here win over them.
	// +optional
	AdditionalArgs map[string]string `json:"additionalArgs,omitempty"`
}

// LeaderElection configures which of several replicas is active.
type LeaderElection struct {
	// leaderElect turns leader election on or off.
	// +optional
	LeaderElect *bool `json:"leaderElect,omitempty"`

	// leaseDuration is how long a replica waits for the leader's next sign of life before it takes
	// over, e.g. `15s`.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than nothing, e.g. 15s"
	LeaseDuration *metav1.Duration `json:"leaseDuration,omitempty"`

	// renewDeadline is how long the leader tries to renew its lease before it gives up, e.g. `10s`.
	// Shorter than leaseDuration.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than nothing, e.g. 10s"
	RenewDeadline *metav1.Duration `json:"renewDeadline,omitempty"`

	// retryPeriod is the time between two attempts to get or renew the lease, e.g. `2s`.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than nothing, e.g. 2s"
	RetryPeriod *metav1.Duration `json:"retryPeriod,omitempty"`

	// resourceLock is the kind of object that serves as the lock. Any but `leases` is ignored, with
	// an event.
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
	// groupKindConcurrency is how many objects of a kind are reconciled at a time, e.g.
	// `AWSCluster: 12`. Flag: --awscluster-concurrency.
	// +optional
	GroupKindConcurrency map[string]int32 `json:"groupKindConcurrency,omitempty"`

	// cacheSyncTimeout is how long a controller waits for its cache to fill, in nanoseconds.
	// Ignored, with an event: Cluster API's managers have no flag for it.
	// +optional
	CacheSyncTimeout *time.Duration `json:"cacheSyncTimeout,omitempty"`

	// recoverPanic reports whether a panic in a controller is caught. Ignored, with an event: Cluster
	// API's managers have no flag for it.
	// +optional
	RecoverPanic *bool `json:"recoverPanic,omitempty"`
}

// MetricsSpec configures a manager's endpoint of metrics.
type MetricsSpec struct {
	// bindAddress is where metrics are served, e.g. `:8080`; `0` serves none. Flag:
	// --metrics-bind-addr.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`

	// diagnosticsAddress is where metrics and other diagnostics are served, over HTTPS and with
	// authorization, e.g. `:8443`. Flag: --diagnostics-address.
	// +optional
	DiagnosticsAddress string `json:"diagnosticsAddress,omitempty"`

	// insecureDiagnostics serves diagnostics over plain HTTP and without authorization. Flag:
	// --insecure-diagnostics.
	// +optional
	InsecureDiagnostics bool `json:"insecureDiagnostics,omitempty"`
}

// HealthSpec configures a manager's endpoints of probes.
type HealthSpec struct {
	// healthProbeBindAddress is where the probes are served, e.g. `:9440`. Flag: --health-addr.
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

	// host that the webhook server listens on. Flag: --webhook-host.
	// +optional
	Host string `json:"host,omitempty"`

	// certDir is the folder with the server's certificate `tls.crt` and key `tls.key`. Flag:
	// --webhook-cert-dir.
	// +optional
	CertDir string `json:"certDir,omitempty"`
}
