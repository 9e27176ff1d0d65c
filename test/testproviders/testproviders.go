// Package testproviders locates the provider releases that tests run on: the real ones in the folder
// that the environment variable PROVIDERS names, and the small samples of test/data.
package testproviders

import (
	"fmt"
	"os"
	"path/filepath"
)

// Variable names the environment variable with the folder of real provider releases, in the layout of
// a clusterctl local repository.
const Variable = "PROVIDERS"

// Samples is the folder of the project's own sample releases, relative to the module's root. It has
// the same layout.
const Samples = "test/data/providers"

// TB is the part of testing.TB that this package needs; GinkgoT returns one, too.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Skip(args ...any)
}

// Folder returns the folder of real provider releases, and skips the test if there is none.
func Folder(t TB) string {
	t.Helper()

	folder := os.Getenv(Variable)
	if folder == "" {
		t.Skip(Variable + " is not set to a folder of real provider releases")
	}

	return folder
}

// Glob returns the paths in the folder of real provider releases that match a pattern, and an error if
// there are none. Without that folder it logs that the real releases are left out, and returns none.
func Glob(t TB, pattern string) ([]string, error) {
	t.Helper()

	folder := os.Getenv(Variable)
	if folder == "" {
		t.Logf("%s is not set: real provider releases are left out", Variable)
		return nil, nil
	}

	paths, err := filepath.Glob(filepath.Join(folder, pattern))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s=%s holds no %s", Variable, folder, pattern)
	}

	return paths, err
}
