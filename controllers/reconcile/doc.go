// Package reconcile keeps a provider's Helm release in sync with the provider's resource.
//
// Every reconcile is one run, in two parts:
//
//   - Care for what is installed, always: the newest revision in Helm's storage is observed, its
//     objects are corrected where they drifted, and their health is read from the watches. A revision
//     that does not become healthy in time, or was not applied completely, is rolled back. CRDs of the
//     installed chart are restored.
//   - Change towards the spec: the plan of what the resource asks for is compared with the release.
//     Before anything is applied, gates check that it may be: contracts, variables, permissions, CRDs.
//     A gate stops the change and never the care.
//
// The steps of both are methods of run, in the order in which run.go lists them. A step records what it
// found out in the run and returns a Result: continue, or why the part ends here. A run ends with one
// Result. Only result.go and conditions.go write conditions: of how the run ended, and of what it found
// out.
package reconcile
