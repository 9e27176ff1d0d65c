package decide

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

const (
	root   = "../../.."
	module = "github.com/capstan-project/capstan/"
	api    = module + "api/v1alpha2"
)

// impure are packages through which a function could read or write something that is no value of its own. Of net/http,
// which is not among them, the codes of answers are used.
var impure = []string{
	"context", "log", "log/slog", "math/rand", "math/rand/v2", "net", "os", "os/exec", "sync", "sync/atomic",
	"github.com/go-logr/logr", "k8s.io/client-go", "k8s.io/klog/v2", "sigs.k8s.io/controller-runtime",
}

// clocks are functions that tell the time or wait.
var clocks = regexp.MustCompile(`\b(time\.(Now|Since|Until|After(Func)?|Sleep|(New)?Tick(er)?|NewTimer)|metav1\.Now)\b`)

// TestDecisionsAndReportsArePure checks the sources of this package, of the one that reports, and of all packages of
// the project that these import. The API is the exception: its kinds are objects of a client.
func TestDecisionsAndReportsArePure(t *testing.T) {
	checked := map[string]bool{api: true}
	checkPure(t, module+"controllers/reconcile/report", checked)
	checkPure(t, module+"controllers/reconcile/decide", checked)
	NewWithT(t).Expect(len(checked)).To(BeNumerically(">", 2), "packages that are imported are checked as well")
}

func checkPure(t *testing.T, name string, checked map[string]bool) {
	t.Helper()

	if checked[name] {
		return
	}

	checked[name] = true

	for _, path := range sources(t, filepath.Join(root, strings.TrimPrefix(name, module))) {
		content, err := os.ReadFile(path)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(clocks.FindString(string(content))).To(BeEmpty(), "%s reads a clock", path)

		file, err := parser.ParseFile(token.NewFileSet(), path, content, parser.ImportsOnly)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			is := func(prefix string) bool {
				return imported == prefix || strings.Contains(prefix, ".") && strings.HasPrefix(imported, prefix+"/")
			}
			NewWithT(t).Expect(slices.ContainsFunc(impure, is)).To(BeFalse(), "%s imports %s", path, imported)

			if strings.HasPrefix(imported, module) {
				checkPure(t, imported, checked)
			}
		}
	}
}

// sources returns the files of a package without its tests.
func sources(t *testing.T, folder string) []string {
	t.Helper()

	all, err := filepath.Glob(filepath.Join(folder, "*.go"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return slices.DeleteFunc(all, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
}

// TestInputsAreValues checks that nothing that can change or do anything reaches a decision or a report.
func TestInputsAreValues(t *testing.T) {
	for _, value := range []any{
		Beginning{}, Installed{}, Changing{}, Upgrading{}, Removing{}, Step{}, Wanted{}, Release{},
		report.Input{}, report.Summary{}, report.Report{},
	} {
		checkValue(t, reflect.TypeOf(value), reflect.TypeOf(value).Name(), map[reflect.Type]bool{})
	}
}

func checkValue(t *testing.T, kind reflect.Type, path string, checked map[reflect.Type]bool) {
	t.Helper()

	// The status is copied before it is changed, which TestChangesLeaveTheStatusThatTheyAreGiven shows.
	if checked[kind] || kind.PkgPath() == api || kind.PkgPath() == "time" {
		return
	}

	checked[kind] = true

	switch kind.Kind() {
	case reflect.Struct:
		for field := range kind.Fields() {
			checkValue(t, field.Type, path+"."+field.Name, checked)
		}
	case reflect.Slice, reflect.Array:
		checkValue(t, kind.Elem(), path+"[]", checked)
	case reflect.Map:
		checkValue(t, kind.Elem(), path+"[]", checked)
	case reflect.Pointer:
		NewWithT(t).Expect(kind.Elem().PkgPath()).To(Equal(api), "%s is a pointer", path)
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		t.Errorf("%s is a %s", path, kind.Kind())
	}
}

// TestStatusIsWrittenByReportsOnly checks that no package but report assigns to a status of a provider, writes
// its conditions, or words an event about it.
func TestStatusIsWrittenByReportsOnly(t *testing.T) {
	writes := []*regexp.Regexp{
		regexp.MustCompile(`conditions\.(Mark|Set|Delete)|meta\.(Set|Remove)StatusCondition`),
		regexp.MustCompile(`GetStatus\(\)\.\w+ = |\bstatus\.[A-Z]\w+ = |\.SetConditions\(`),
		regexp.MustCompile(`\.Eventf\(`),
	}

	var found []string

	reports := func(path string) bool { return filepath.Base(filepath.Dir(path)) == "report" }

	err := filepath.WalkDir(filepath.Join(root, "controllers"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || reports(path) {
			return err
		}

		content, err := os.ReadFile(path)

		for _, pattern := range writes {
			for _, line := range pattern.FindAllString(string(content), -1) {
				found = append(found, strings.TrimPrefix(path, root+"/")+": "+line)
			}
		}

		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(found).To(ConsistOf(
		"controllers/reconcile/reporting.go: .Eventf(",
	))
}
