package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSelectPackages(t *testing.T) {
	all := []goPackage{
		{ImportPath: module + "a"},
		{ImportPath: module + "a.test", Deps: []string{module + "a"}},
		{ImportPath: module + "b.test", Deps: []string{module + "b [" + module + "b.test]", module + "a"}},
		{ImportPath: module + "b"},
		{ImportPath: module + "c"}, // without tests
		{ImportPath: module + "docs.test"},
		{ImportPath: module + "test/chart.test"},
		{ImportPath: module + scenariosPackage + ".test", Deps: []string{module + "a"}},
	}

	for name, tt := range map[string]struct{ files, want []string }{
		"nothing":             {nil, nil},
		"a package":           {[]string{"b/b.go"}, []string{"b"}},
		"one that others use": {[]string{"a/a.go"}, []string{"a", "b"}},
		"test data":           {[]string{"b/testdata/x/y.yaml"}, []string{"b"}},
		"without tests":       {[]string{"c/c.go"}, nil},
		"no package":          {[]string{"charts/capstan/values.yaml"}, []string{"docs", "test/chart"}},
		"in the main folder":  {[]string{"Makefile"}, []string{"docs", "test/chart"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range selectPackages(all, tt.files) {
				got = append(got, strings.TrimPrefix(p, module))
			}

			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

func TestScenarioFlags(t *testing.T) {
	g := NewWithT(t)

	g.Expect(scenarioFlags([]string{"docs/README.md"})).To(BeEmpty())
	g.Expect(scenarioFlags([]string{"controllers/usage/usage.go", "controllers/usage/find.go"})).
		To(HaveExactElements("--focus-file=/delete_test.go", "--focus-file=/delete_always_test.go"))
	g.Expect(scenarioFlags([]string{"test/e2e/job_test.go"})).To(HaveExactElements("--focus-file=/job_test.go"))
	g.Expect(scenarioFlags([]string{"test/e2e/suite_test.go", "controllers/usage/usage.go"})).
		To(HaveExactElements("--focus-file=."))
}

// Each file with scenarios is selected by a change of the product, and each file in the table exists.
func TestGroupsAreComplete(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../e2e/*_test.go")
	g.Expect(err).NotTo(HaveOccurred())

	var exist []string

	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), "_test.go"); !slices.Contains(helpers, name) {
			exist = append(exist, name)
		}
	}

	var selected []string
	for _, group := range groups {
		selected = append(selected, group.files...)

		g.Expect("../../"+group.folder).To(BeADirectory(), group.folder)
	}

	slices.Sort(selected)
	g.Expect(slices.Compact(selected)).To(ConsistOf(exist))
}
