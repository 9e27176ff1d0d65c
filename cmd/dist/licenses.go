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

// kinds are the licenses that are recognized, by their SPDX identifiers, with phrases that a text
// of one has all of, in lower case and with single spaces. Those with a reason are not allowed in a
// program under Apache-2.0.
var kinds = []struct {
	id      string
	phrases []string
	reason  string
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
	{id: "AGPL", phrases: []string{"gnu affero general public license"}, reason: "it extends to the whole program"},
	{
		id:      "LGPL",
		phrases: []string{"gnu lesser general public license"},
		reason:  "it asks that the library can be exchanged, which a static program does not allow",
	},
	{id: "GPL", phrases: []string{"gnu general public license"}, reason: "it extends to the whole program"},
	{id: "SSPL", phrases: []string{"server side public license"}, reason: "it is not free"},
	{id: "BUSL", phrases: []string{"business source license"}, reason: "it is not free"},
}

// recognize gives the licenses in a text, and why one of them is not allowed.
func recognize(text []byte) (ids []string, reason string) {
	plain := strings.Join(strings.Fields(strings.ToLower(string(text))), " ")

	for _, kind := range kinds {
		if slices.ContainsFunc(kind.phrases, func(phrase string) bool { return !strings.Contains(plain, phrase) }) {
			continue
		}

		if kind.reason == "" && (kind.id != "BSD-2-Clause" || !slices.Contains(ids, "BSD-3-Clause")) {
			ids = append(ids, kind.id)
		}
		// MPL-2.0 names the GNU licenses as those it may be changed into.
		if kind.reason != "" && !slices.Contains(ids, "MPL-2.0") {
			reason = kind.id + ": " + kind.reason
		}
	}

	return ids, reason
}

// module is a dependency with its licenses.
type module struct {
	Path, Version string
	// IDs are the licenses found, sorted.
	IDs []string
	// Texts are the files that they were found in.
	Texts [][]byte
}

// systems are those that programs are released for; each can bring dependencies of its own.
var systems = []string{"linux", "darwin", "windows"}

// licenses finds the licenses of all modules that are linked into the programs, in the order of
// their paths. One that is not allowed, or not recognized, is an error that names them all.
func licenses(ctx context.Context) ([]module, error) {
	folders, err := linked(ctx)
	if err != nil {
		return nil, err
	}

	var (
		all   []module
		wrong []error
	)

	for _, name := range slices.Sorted(maps.Keys(folders)) {
		m := module{}

		m.Path, m.Version, _ = strings.Cut(name, "@")
		if err := m.read(folders[name]); err != nil {
			wrong = append(wrong, fmt.Errorf("licenses of %s: %w", name, err))
		}

		all = append(all, m)
	}

	return all, errors.Join(wrong...)
}

// linked gives the folders of the modules in the programs, by path@version.
func linked(ctx context.Context) (map[string]string, error) {
	folders := map[string]string{}

	for _, system := range systems {
		cmd := exec.CommandContext(
			ctx,
			"go",
			"list",
			"-deps",
			"-f",
			"{{with .Module}}{{if .Version}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}",
			"./cmd/...",
		)

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

// read looks for licenses in the module's folder.
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
			return fmt.Errorf("%s is not allowed (%s); replace the module", entry.Name(), reason)
		}

		m.Texts = append(m.Texts, text)

		for _, id := range ids {
			found[id] = true
		}
	}

	if len(found) == 0 {
		return errors.New("none is recognized; look at the module, and replace it or teach cmd/dist/licenses.go its license")
	}

	m.IDs = slices.Sorted(maps.Keys(found))

	return nil
}

// notices is the text of all licenses, which goes with the programs because most of them ask for
// it.
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
