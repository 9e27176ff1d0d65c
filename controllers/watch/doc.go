// Package watch maps events to the provider resources that they concern: changes of Secrets and
// ConfigMaps that a resource uses, of other providers, of CRDs, and of Helm's records. Each map
// function finds resources by an index and enqueues only those for which the event matters, so that
// hundreds of providers do not wake each other.
package watch
