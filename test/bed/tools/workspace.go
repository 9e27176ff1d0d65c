package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// workspace is the Go workspace of the project's module and of those tools that need nothing newer
// than the project does.
type workspace struct {
	file    string   // go.work
	modules []string // folders
}

// workspace returns the workspace in which a is built, or nil if it is built with the dependencies
// of its own module.
func (s *Set) workspace(a artifact) (*workspace, error) {
	dir := filepath.Join(s.root, "test", "bed", "tools")
	work := &workspace{file: filepath.Join(dir, "go.work")}

	data, err := os.ReadFile(work.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the workspace of the test bed's programs: %w", err)
	}

	parsed, err := modfile.ParseWork(work.file, data, nil)
	if err != nil {
		return nil, fmt.Errorf("read the workspace of the test bed's programs: %w", err)
	}

	for _, use := range parsed.Use {
		work.modules = append(work.modules, filepath.Join(dir, use.Path))
	}

	if !slices.Contains(work.modules, s.pins(a)) {
		return nil, nil
	}

	return work, nil
}
