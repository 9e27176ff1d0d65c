// Package supply is the parent of the packages that move providers and charts between Capstan and
// the outside world: web servers, Git forges, OCI registries, clusters and files.
//
// Package chartgen turns a bundle into a chart and is pure: it opens no connection, reads no
// cluster, and gives the same chart for the same bundle. Everything that can block, fail or need
// credentials is below this folder instead. In the order in which they import one another:
//
//   - transport builds HTTP transports from certificates and a proxy. It imports no other package
//     of Capstan.
//   - web downloads small files over HTTP, and oci reads and writes OCI registries. Both build
//     their clients on transport.
//   - ranges parses requested versions, gitrefs and gomodules list those of projects, and
//     overrides reads files that replace published ones, from clusterctl's overrides layer.
//   - source lists the versions of a provider and fetches one as a bundle or as a ready chart. It
//     uses web for GitHub, GitLab and plain web servers, oci for artifacts and images, and reads
//     ConfigMaps and folders itself.
//   - catalog knows clusterctl's list of providers and the user's clusterctl configuration, and
//     opens the source of an entry. verify checks signatures for sources in registries.
//   - store keeps charts in the cluster and in a registry, and mirror copies charts and images to
//     a registry or an archive. Both use oci.
//   - clustertemplate generates the manifests of a workload cluster from the templates in a chart,
//     a folder or the management cluster.
//
// Packages source and store read and write objects of a cluster through controller-runtime's
// client; no package here imports the controllers or prints to a terminal.
package supply
