// Package model has what random walks through the lifecycle of a provider need: the steps, the versions of the provider
// that they choose from, and an Oracle, which knows what users asked for and checks what they got. It sees a Snapshot
// only. Package test/chaos takes the walks with the real operator on a real API server.
package model
