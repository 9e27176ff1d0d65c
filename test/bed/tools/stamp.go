package tools

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// stale returns the artifacts that Build has to build.
func (s *Set) stale() ([]artifact, error) {
	var stale []artifact

	for _, a := range s.artifacts {
		want, err := s.recipe(a)
		if err != nil {
			return nil, err
		}

		have, err := os.ReadFile(s.stampPath(a))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read the stamp of %s: %w", a.name, err)
		}

		if _, err := os.Stat(s.path(a)); err != nil || string(have) != want {
			stale = append(stale, a)
		}
	}

	return stale, nil
}

// recipe returns a hash of all inputs of an artifact except the Go version.
func (s *Set) recipe(a artifact) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %s/%s\n", a, buildFlags, runtime.GOOS, runtime.GOARCH)

	pinned, err := s.pinFiles(a)
	if err != nil {
		return "", err
	}

	if strings.HasPrefix(a.pkg, "./") {
		pinned = append(pinned, filepath.Join(s.pins(a), a.pkg, "main.go"))
	}

	for _, file := range pinned {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read what %s is built from: %w", a.name, err)
		}

		hash.Write(content)
	}

	return fmt.Sprintf("%x\n", hash.Sum(nil)), nil
}

// pinFiles returns the files that determine the versions of a's dependencies.
func (s *Set) pinFiles(a artifact) ([]string, error) {
	work, err := s.workspace(a)
	if err != nil {
		return nil, err
	}

	if work == nil {
		return pinFilesOf(s.pins(a)), nil
	}

	files := []string{work.file, work.file + ".sum"}
	for _, dir := range work.modules {
		files = append(files, pinFilesOf(dir)...)
	}

	return files, nil
}

func pinFilesOf(dir string) []string {
	return []string{filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")}
}

func (s *Set) stampPath(a artifact) string { return filepath.Join(s.Cache(), a.name+".stamp") }
