// Package contracts shows that what lint calls an error fails: with clusterctl, with the API server, or with the
// controllers of Cluster API's core. Each rule of that level has a release that breaks it, and a program that fails for
// this release and not for the one that it is a copy of.
package contracts
