// Package managers finds the programs of Cluster API's managers and of cert-manager, for tests that run them: in a
// folder, or built from Go modules. It plans upgrades through the releases whose programs there are.
package managers

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Variable names the environment variable with a folder of static programs. Each is named as its image, without the
// registry: "capd-manager:v1.13.5".
const Variable = "MANAGERS"

const coreModule = "sigs.k8s.io/cluster-api"

// origins are the programs, by the last element of the image's name, that Go modules have.
var origins = map[string]origin{
	"cluster-api-controller":           {coreModule, []string{"core", "."}},
	"kubeadm-bootstrap-controller":     {coreModule, []string{"bootstrap/kubeadm"}},
	"kubeadm-control-plane-controller": {coreModule, []string{"controlplane/kubeadm"}},
	"capd-manager":                     {coreModule + "/test", []string{"infrastructure/docker"}},
}

// Finder finds the programs of images.
type Finder struct {
	// Folder contains programs, as Variable describes. It may be empty.
	Folder string
	// Cache is the folder of programs that have been built. It is created.
	Cache string
	// Log gets a line for each program that is being built, which takes minutes.
	Log io.Writer
}

// NotFoundError is returned by Find if there is no program for an image.
type NotFoundError struct {
	// File is the name that the program would have in the folder.
	File string
	// Reason is why it could not be built.
	Reason string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s is not in the folder %s, and %s", e.File, Variable, e.Reason)
}

// Find returns the path of the program of an image, and builds it if necessary. The error is a *NotFoundError if there
// is none.
func (f Finder) Find(ctx context.Context, image string) (string, error) {
	file := path.Base(image)

	for _, folder := range []string{f.Folder, f.Cache} {
		if folder == "" {
			continue
		}

		program := filepath.Join(folder, file)
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
	}

	name, version, _ := strings.Cut(file, ":")

	from, known := origins[name]
	if !known {
		return "", &NotFoundError{File: file, Reason: "no Go module has it"}
	}

	if err := f.build(ctx, file, from, version); err != nil {
		return "", &NotFoundError{File: file, Reason: fmt.Sprintf("cannot be built: %v", err)}
	}

	return filepath.Join(f.Cache, file), nil
}
