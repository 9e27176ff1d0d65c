package helm

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/releaseutil"
)

// notesFile is the file that Helm shows after an action.
const notesFile = "NOTES.txt"

// IsNotes reports whether a rendered file is no manifest, but text for users.
func IsNotes(path string) bool { return strings.HasSuffix(path, notesFile) }

// Sort returns what Helm records of a chart's rendered files: the manifest in the order of installation, the hooks, and
// the notes of the chart itself. Objects with unknown hook events are in neither.
func Sort(chart string, files map[string]string) (manifest string, hooks []*Hook, notes string, err error) {
	notes = files[path.Join(chart, "templates", notesFile)]

	files = maps.Clone(files)
	maps.DeleteFunc(files, func(path, _ string) bool { return IsNotes(path) })

	hooks, sorted, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", nil, "", err
	}

	// What Helm adds when it runs a hook, `helm test` included, is recorded at once, so that it is no change then.
	for _, h := range hooks {
		if len(h.DeletePolicies) == 0 {
			h.DeletePolicies = []HookDeletePolicy{DeleteBeforeCreation}
		}
	}

	var b strings.Builder
	for _, m := range sorted {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}

	return b.String(), hooks, notes, nil
}
