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

// Manifest returns the manifest that Helm records for a chart's rendered files, in the order of installation, and the
// notes. The files have no hooks.
func Manifest(chart string, files map[string]string) (manifest, notes string, err error) {
	notes = files[path.Join(chart, "templates", notesFile)]

	files = maps.Clone(files)
	maps.DeleteFunc(files, func(path, _ string) bool { return strings.HasSuffix(path, notesFile) })

	_, sorted, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", "", err
	}

	var b strings.Builder
	for _, m := range sorted {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}

	return b.String(), notes, nil
}
