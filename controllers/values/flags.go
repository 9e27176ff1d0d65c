package values

import (
	"fmt"
	"slices"
	"strings"
)

// flag is what a field of spec.manager sets.
type flag struct {
	// names are those that managers have for it, the usual one first. A manager that is published with one of
	// them gets that one.
	names []string
	// common is set if practically all managers have the first one, even if they are published without it.
	// An unknown flag keeps a manager from starting, so the others are set only where they are published.
	common bool
}

// managerFlags are the flags of Cluster API's managers, by the field that sets them.
var managerFlags = map[string]flag{
	"syncPeriod":                    {[]string{"sync-period"}, true},
	"cacheNamespace":                {[]string{"namespace"}, true},
	"profilerAddress":               {[]string{"profiler-address"}, true},
	"verbosity":                     {[]string{"v"}, true},
	"maxConcurrentReconciles":       {[]string{"max-concurrent-reconciles"}, false},
	"leaderElection.leaderElect":    {[]string{"leader-elect", "enable-leader-election"}, true},
	"leaderElection.resourceName":   {[]string{"leader-election-id"}, false},
	"leaderElection.leaseDuration":  {[]string{"leader-elect-lease-duration"}, true},
	"leaderElection.renewDeadline":  {[]string{"leader-elect-renew-deadline"}, true},
	"leaderElection.retryPeriod":    {[]string{"leader-elect-retry-period"}, true},
	"metrics.diagnosticsAddress":    {[]string{"diagnostics-address"}, false},
	"metrics.insecureDiagnostics":   {[]string{"insecure-diagnostics"}, false},
	"health.healthProbeBindAddress": {[]string{"health-addr", "health-probe-bind-address"}, false},
	"webhook.port":                  {[]string{"webhook-port"}, true},
	"webhook.certDir":               {[]string{"webhook-cert-dir"}, true},
	"webhook.host":                  {[]string{"webhook-host"}, false},
	"metrics.bindAddress": {
		[]string{"metrics-bind-addr", "metrics-bind-address", "metrics-addr", "diagnostics-address"}, false,
	},
}

// concurrencySuffix ends the names of the flags for the concurrency of one controller.
const concurrencySuffix = "-concurrency"

// setField sets the flag of a field, unless the value is empty or the manager is not known to have the
// flag.
func (m *manager) setField(field, value string) {
	if value == "" {
		return
	}

	flag := managerFlags[field]

	for _, name := range flag.names {
		if m.has(name) {
			m.Args[name] = value
			return
		}
	}

	if flag.common {
		m.Args[flag.names[0]] = value
		m.doubtFlag(field, flag.names[0])

		return
	}

	m.ignore(field, fmt.Sprintf("the manager is not published with --%s, and might not start with it; "+
		"if it has a flag for this, set that with additionalArgs", strings.Join(flag.names, " or --")))
}

// setConcurrency sets the concurrency of all controllers: with the flag for that, or else with all
// published flags of single controllers that the spec does not set itself.
func (m *manager) setConcurrency(value string) {
	if value == "" {
		return
	}

	single := filter(m.flags, func(name string) bool { return strings.HasSuffix(name, concurrencySuffix) })

	if m.has("max-concurrent-reconciles") || len(single) == 0 {
		m.setField("maxConcurrentReconciles", value)
		return
	}

	for _, name := range single {
		if _, set := m.Args[name]; !set {
			m.Args[name] = value
		}
	}
}

// has reports whether the manager is published with a flag, or gets it by args.
func (m *manager) has(name string) bool {
	_, set := m.Args[name]
	return set || slices.Contains(m.flags, name)
}

// ignore records that a field has no effect.
func (m *manager) ignore(field, reason string) {
	m.ignored = append(m.ignored, fmt.Sprintf("%s is ignored: %s", field, reason))
}

// trimDashes returns the name of a flag.
func trimDashes(flag string) string { return strings.TrimLeft(flag, "-") }
