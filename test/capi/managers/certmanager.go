package managers

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// certManagerImage is the start of the names of cert-manager's images, in its chart.
const certManagerImage = "quay.io/jetstack/"

// certManagerPrograms are the programs of cert-manager that run all the time.
var certManagerPrograms = []string{"cert-manager-controller", "cert-manager-webhook", "cert-manager-cainjector"}

// FindCertManager returns the newest version of cert-manager of which the folder has all programs, and their paths by
// image. No Go module has them. The version is empty if there is none.
func (f Finder) FindCertManager() (version string, programs map[string]string, err error) {
	if f.Folder == "" {
		return "", nil, nil
	}

	entries, err := os.ReadDir(f.Folder)
	if err != nil {
		return "", nil, err
	}

	var newest *semver.Version

	for _, entry := range entries {
		tag, ok := strings.CutPrefix(entry.Name(), certManagerPrograms[0]+":")
		if !ok {
			continue
		}

		v, err := semver.NewVersion(tag)
		if err != nil || newest != nil && !v.GreaterThan(newest) {
			continue
		}

		if complete := f.certManager(tag); complete != nil {
			newest, version, programs = v, tag, complete
		}
	}

	return version, programs, nil
}

// certManager returns the programs of a version by image, or nil if one is missing.
func (f Finder) certManager(tag string) map[string]string {
	programs := map[string]string{}

	for _, name := range certManagerPrograms {
		file := filepath.Join(f.Folder, name+":"+tag)
		if _, err := os.Stat(file); err != nil {
			return nil
		}

		programs[certManagerImage+name+":"+tag] = file
	}

	return programs
}

// Explain returns how to provide programs that are missing.
func Explain() string {
	return "set " + Variable + " to a folder of static programs that are named as their images, such as " +
		certManagerPrograms[0] + ":v1.21.1 and capd-manager:v1.13.5"
}
