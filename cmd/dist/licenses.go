package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// knownLicenses are the licenses that can be recognized.
var knownLicenses = []struct {
	// id is the SPDX identifier.
	id string

	// phrases all occur in the text of the license, in lower case and with single spaces.
	phrases []string

	// reason is why a program under Apache-2.0 cannot contain code under this license; empty if it
	// can.
	reason string
}{
	{id: "MPL-2.0", phrases: []string{"mozilla public license"}},
	{id: "Apache-2.0", phrases: []string{"apache license", "version 2.0"}},
	{
		id: "MIT",
		phrases: []string{
			"permission is hereby granted, free of charge, to any person obtaining a copy",
			"without restriction",
		},
	},
	{
		id:      "BSD-3-Clause",
		phrases: []string{"redistribution and use in source and binary forms", "endorse or promote products"},
	},
	{id: "BSD-2-Clause", phrases: []string{"redistribution and use in source and binary forms"}},
	{
		id: "ISC",
		phrases: []string{
			"permission to use, copy, modify, and",
			"distribute this software for any purpose with or without fee",
		},
	},
	{id: "CC0-1.0", phrases: []string{"cc0 1.0 universal"}},
	{id: "Unlicense", phrases: []string{"this is free and unencumbered software released into the public domain"}},
	{id: "AGPL", phrases: []string{"gnu affero general public license"}, reason: "it applies to the whole program"},
	{
		id:      "LGPL",
		phrases: []string{"gnu lesser general public license"},
		reason:  "it requires that the library can be replaced, which a static program does not allow",
	},
	{id: "GPL", phrases: []string{"gnu general public license"}, reason: "it applies to the whole program"},
	{id: "SSPL", phrases: []string{"server side public license"}, reason: "it is not an open source license"},
	{id: "BUSL", phrases: []string{"business source license"}, reason: "it is not an open source license"},
}

// recognize returns the licenses in a text and, if one of them is not allowed, the reason.
func recognize(text []byte) (ids []string, reason string) {
	plain := strings.Join(strings.Fields(strings.ToLower(string(text))), " ")

	for _, license := range knownLicenses {
		missing := func(phrase string) bool { return !strings.Contains(plain, phrase) }
		if slices.ContainsFunc(license.phrases, missing) {
			continue
		}

		switch {
		case license.id == "BSD-2-Clause" && slices.Contains(ids, "BSD-3-Clause"):
			// The text of BSD-3-Clause includes that of BSD-2-Clause.
		case license.reason == "":
			ids = append(ids, license.id)
		case !slices.Contains(ids, "MPL-2.0"):
			// The text of MPL-2.0 mentions the GNU licenses.
			reason = license.id + ": " + license.reason
		}
	}

	return ids, reason
}

// module is a dependency with its licenses.
type module struct {
	Path, Version string

	// IDs are the SPDX identifiers of its licenses, sorted.
	IDs []string

	// Texts are the contents of its license files.
	Texts [][]byte
}

// systems are the operating systems of a release; each can have dependencies of its own.
var systems = []string{"linux", "darwin", "windows"}

// licenses returns all modules that are linked into the programs with their licenses, in the order
// of their paths. The error lists all licenses that are not allowed or not recognized.
func licenses(ctx context.Context) ([]module, error) {
	folders, err := linkedModules(ctx)
	if err != nil {
		return nil, err
	}

	var (
		modules []module
		failed  []error
	)

	for _, name := range slices.Sorted(maps.Keys(folders)) {
		m := module{}

		m.Path, m.Version, _ = strings.Cut(name, "@")
		if err := m.read(folders[name]); err != nil {
			failed = append(failed, fmt.Errorf("licenses of %s: %w", name, err))
		}

		modules = append(modules, m)
	}

	return modules, errors.Join(failed...)
}

// linkedModules returns the folders of the modules in the programs, by path@version.
func linkedModules(ctx context.Context) (map[string]string, error) {
	const format = "{{with .Module}}{{if .Version}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}"

	folders := map[string]string{}

	for _, system := range systems {
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, "./cmd/...")

		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)

		var stderr bytes.Buffer

		cmd.Stderr = &stderr

		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list dependencies for %s: %w\n%s", system, err, &stderr)
		}

		for line := range strings.Lines(string(out)) {
			if name, dir, found := strings.Cut(strings.TrimSpace(line), " "); found {
				folders[name] = dir
			}
		}
	}

	return folders, nil
}

var licenseFile = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying|notice|patents)([-.].*)?$`)

// read reads the licenses in the module's folder.
func (m *module) read(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}

	found := map[string]bool{}

	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}

		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}

		ids, reason := recognize(text)
		if reason != "" {
			return fmt.Errorf("%s is not allowed (%s); remove the dependency", entry.Name(), reason)
		}

		m.Texts = append(m.Texts, text)

		for _, id := range ids {
			found[id] = true
		}
	}

	if len(found) == 0 {
		return errors.New(
			"none is recognized; add the license to cmd/dist/licenses.go if it is allowed, or remove the dependency")
	}

	m.IDs = slices.Sorted(maps.Keys(found))

	return nil
}

// notices returns the text of all licenses. Most licenses require that it is distributed with the
// programs.
func notices(modules []module) []byte {
	var out bytes.Buffer
	fmt.Fprintln(&out, "This program contains the Go modules below, under their own licenses.")

	for _, m := range modules {
		fmt.Fprintf(&out, "\n%s\n%s %s (%s)\n\n", strings.Repeat("=", 100), m.Path, m.Version, strings.Join(m.IDs, ", "))

		for _, text := range m.Texts {
			out.Write(append(bytes.TrimSpace(text), '\n', '\n'))
		}
	}

	return out.Bytes()
}
