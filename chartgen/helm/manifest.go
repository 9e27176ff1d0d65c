package helm

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

const (
	// notesFile is the file that Helm shows after an action.
	notesFile = "NOTES.txt"
	// hookAnnotation makes an object a hook.
	hookAnnotation = "helm.sh/hook"
)

// IsNotes reports whether a rendered file is no manifest, but text for users.
func IsNotes(path string) bool { return strings.HasSuffix(path, notesFile) }

// Sort returns what Helm records of a chart's rendered files: the manifest in the order of installation, and the notes.
// Hooks, which are not part of the manifest, are an error.
func Sort(chart string, files map[string]string) (manifest, notes string, err error) {
	notes = files[path.Join(chart, "templates", notesFile)]

	files = maps.Clone(files)
	maps.DeleteFunc(files, func(path, _ string) bool { return IsNotes(path) })

	if err := checkHooks(files); err != nil {
		return "", "", err
	}

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

// checkHooks returns an error if an object in the files is a hook, of whatever event.
func checkHooks(files map[string]string) error {
	for _, file := range slices.Sorted(maps.Keys(files)) {
		documents := SplitManifests(files[file])

		for _, key := range slices.Sorted(maps.Keys(documents)) {
			var head releaseutil.SimpleHead
			if yaml.Unmarshal([]byte(documents[key]), &head) != nil || head.Metadata == nil {
				continue // sorting reports what is invalid
			}

			if event, isHook := head.Metadata.Annotations[hookAnnotation]; isHook {
				return fmt.Errorf("%s %s is a hook of Helm (%s: %s), which charts of providers do not have; "+
					"install the chart with helm, Flux or Argo CD", head.Kind, head.Metadata.Name, hookAnnotation, event)
			}
		}
	}

	return nil
}
