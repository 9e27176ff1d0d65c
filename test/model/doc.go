// Package model checks the lifecycle of a provider by random walks. A World is a small model of one
// provider: its resource, Helm's storage, the objects in the cluster, and two operator processes that
// can be killed, frozen and set to a wrong time, and whose requests can fail. The processes go through the
// operator's own passes of package controllers/reconcile/decide, and write what package report says: what the
// model has of its own are the reader and the writer.
//
// An Oracle knows what users asked for and checks what they got. It sees a Snapshot of the world
// only, so that package test/chaos can repeat a walk with the real operator on a real API server and
// ask the same oracle.
package model
