// Command changed prints which tests depend on what differs from a commit, by default main: the packages with
// -packages, and the files with scenarios, as flags of Ginkgo, with -scenarios.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module begins the import paths of the project's packages.
const module = "github.com/capstan-project/capstan/"

// scenariosPackage has the scenarios. They depend on all other packages, so a table selects them.
const scenariosPackage = "test/e2e"

func main() {
	base := flag.String("base", "main", "commit to compare with")
	packages := flag.Bool("packages", false, "print the packages")
	scenarios := flag.Bool("scenarios", false, "print the flags for the scenarios")

	flag.Parse()

	files, err := changedFiles(*base)
	if err != nil {
		fail(err)
	}

	if *packages {
		found, err := dependents(files)
		if err != nil {
			fail(err)
		}

		fmt.Println(strings.Join(found, " "))
	}

	if *scenarios {
		fmt.Println(strings.Join(scenarioFlags(files), " "))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "changed:", err)
	os.Exit(1)
}

// changedFiles returns the files that differ from a commit, relative to the project's folder.
func changedFiles(base string) ([]string, error) {
	start, err := output("git", "merge-base", base, "HEAD")
	if err != nil {
		return nil, err
	}

	tracked, err := output("git", "diff", "--name-only", strings.TrimSpace(start))
	if err != nil {
		return nil, err
	}

	untracked, err := output("git", "ls-files", "--others", "--exclude-standard")

	return strings.Fields(tracked + untracked), err
}

func output(program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr

	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}

	return string(out), nil
}

// goPackage is what `go list` says of a package, or of the program with its tests.
type goPackage struct {
	ImportPath, ForTest string
	Deps                []string
}

// dependents returns the packages whose tests depend on files. What is not in a package is what docs and charts are
// about, whose tests are there.
func dependents(files []string) ([]string, error) {
	out, err := output("go", "list", "-test", "-json=ImportPath,ForTest,Deps", "./...")
	if err != nil {
		return nil, err
	}

	all, err := parse([]byte(out))
	if err != nil {
		return nil, err
	}

	return selectPackages(all, files), nil
}

func parse(listed []byte) ([]goPackage, error) {
	var all []goPackage

	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		var p goPackage

		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}

		if err != nil {
			return nil, fmt.Errorf("read what go list prints: %w", err)
		}

		all = append(all, p)
	}
}

// selectPackages returns the packages whose test programs depend on files, without the scenarios, sorted.
func selectPackages(all []goPackage, files []string) []string {
	known := map[string]bool{}
	for _, p := range all {
		known[p.ImportPath] = true
	}

	changed := map[string]bool{}

	for _, file := range files {
		if owner := packageOf(file, known); owner != "" {
			changed[owner] = true
		} else {
			changed[module+"docs"], changed[module+"test/chart"] = true, true
		}
	}

	var selected []string

	for _, p := range all {
		tested, isProgram := strings.CutSuffix(p.ImportPath, ".test")
		if !isProgram || tested == module+scenariosPackage {
			continue
		}

		// A package that is compiled for a test is listed as "package [package.test]".
		depends := func(dep string) bool {
			path, _, _ := strings.Cut(dep, " ")

			return changed[path]
		}

		if changed[tested] || slices.ContainsFunc(p.Deps, depends) {
			selected = append(selected, tested)
		}
	}

	slices.Sort(selected)

	return selected
}

// packageOf returns the package whose folder has a file, or is the nearest one above; empty if there is none.
func packageOf(file string, known map[string]bool) string {
	for folder := filepath.Dir(file); folder != "."; folder = filepath.Dir(folder) {
		if known[module+folder] {
			return module + folder
		}
	}

	return ""
}
