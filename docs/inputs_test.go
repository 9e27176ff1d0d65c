package docs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
)

const inputHeader = "| input | what it is | who can write it | the worst that it can cause |"

// TestInputs checks that the table of inputs in security.md has each field that a decision depends on in one row, and
// no other fields.
func TestInputs(t *testing.T) {
	g := NewWithT(t)

	_, table, found := strings.Cut(pages(t)["docs/security.md"], "\n"+inputHeader+"\n|---|---|---|---|\n")
	g.Expect(found).To(BeTrue(), "a table with the header %s", inputHeader)

	var listed []string

	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}

		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		g.Expect(cells).To(HaveLen(4), line)
		g.Expect(cells).NotTo(ContainElement(MatchRegexp(`^\s*$`)), line)
		g.Expect(strings.TrimSpace(cells[1])).To(MatchRegexp("^(evidence|claim): "), line)

		for _, name := range regexp.MustCompile("`([A-Za-z0-9.]+)`").FindAllStringSubmatch(cells[0], -1) {
			listed = append(listed, name[1])
		}
	}

	var fields, types []string

	seen := map[reflect.Type]bool{}

	for _, input := range []any{
		decide.Beginning{}, decide.Installed{}, decide.Changing{}, decide.Upgrading{}, decide.Removing{},
	} {
		fields = append(fields, fieldsOf(reflect.TypeOf(input), seen)...)
		types = append(types, reflect.TypeOf(input).Name())
	}

	g.Expect(types).To(ConsistOf(inputsOfRules(g)), "the types that lists of rules take")

	slices.Sort(fields)
	slices.Sort(listed)
	g.Expect(len(fields)).To(BeNumerically(">", 50))
	g.Expect(listed).To(Equal(fields), "the inputs of decisions, and of what these contain")
}

// inputsOfRules returns the names of the types that the lists of rules in package decide take.
func inputsOfRules(g Gomega) []string {
	files, err := filepath.Glob(filepath.Join(root, "controllers/reconcile/decide/*.go"))
	g.Expect(err).NotTo(HaveOccurred())

	var names []string

	for _, file := range files {
		source, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())

		for _, found := range regexp.MustCompile(`= \[\]rule\[(\w+)\]\{`).FindAllStringSubmatch(string(source), -1) {
			names = append(names, found[1])
		}
	}

	return names
}

// fieldsOf returns the fields of a type of the project and of those that it contains, as package.Type.Field. A field
// that contains others of the project is not an input itself.
func fieldsOf(of reflect.Type, seen map[reflect.Type]bool) []string {
	if seen[of] {
		return nil
	}

	seen[of] = true

	var fields []string

	for i := range of.NumField() {
		field := of.Field(i)

		inner := contained(field.Type)
		if inner != nil {
			fields = append(fields, fieldsOf(inner, seen)...)
			continue
		}

		fields = append(fields, of.String()+"."+field.Name)
	}

	return fields
}

// contained returns the struct of the project that a field has, in a list, a map or by a pointer, too; nil for none.
func contained(of reflect.Type) reflect.Type {
	switch of.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Array:
		return contained(of.Elem())
	case reflect.Struct:
		if strings.HasPrefix(of.PkgPath(), "github.com/capstan-project/capstan/") {
			return of
		}
	}

	return nil
}
