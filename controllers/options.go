package controllers

import (
	"time"

	"github.com/fluxcd/pkg/runtime/acl"

	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/watch"
)

// Options are the operator's settings.
type Options struct {
	// Namespace is the operator's; empty if a command does not know it.
	Namespace string
	// Scope selects the resources that are reconciled.
	Scope watch.Scope
	// Concurrency is how many resources of one kind are reconciled at a time.
	Concurrency int
	// Suspended has the effect of spec.suspend of all resources.
	Suspended bool
	// WatchConfigMaps and WatchSecrets make a change of a source's ConfigMap, or of the Secret with
	// variables, take effect at once. Without them it takes effect with the next change of the resource,
	// unless that has never been healthy.
	WatchConfigMaps, WatchSecrets bool
	// DefaultServiceAccount is the ServiceAccount, in each resource's namespace, that is impersonated
	// for resources that name none; empty for the operator's own permissions.
	DefaultServiceAccount string
	// ACL restricts what resources may refer to.
	ACL acl.Options
	// RemoteInterval is how often what is installed in remote clusters is looked at while nothing changes.
	RemoteInterval time.Duration
	// Registry is the operator's access to registries, and ImageRegistry the one that replaces the
	// registry of every image.
	Registry      *fetch.Registry
	ImageRegistry string
	// Managers are settings for the managers of all providers; nil for none.
	Managers *managers.Settings
	// Environment are variables that providers get unless their resource sets them or runs as a ServiceAccount.
	Environment plan.Environment
	// SourcePolicy restricts the sources of resources.
	SourcePolicy fetch.Policy
	// ClusterctlInventory makes the operator keep clusterctl's inventory.
	ClusterctlInventory bool
	// ConfigFile is the path of a configuration in clusterctl's format, and Catalog reads it.
	ConfigFile string
	Catalog    fetch.Catalog
	// Metrics counts what happens; nil counts nothing.
	Metrics *metrics.Recorder
}
