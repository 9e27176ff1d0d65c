package chartgen_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

const (
	configMap      = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	deploymentHead = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n" +
		"spec: {template: {spec: {containers: [{name: manager, image: a.b/c, "
	crdHead = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: "
	series  = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n" +
		"releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]\n"
)

// aliasBomb returns a flow mapping of a few hundred bytes that expands to 9^9 strings.
func aliasBomb() string {
	entries := []string{"a0: &a0 [x, x, x, x, x, x, x, x, x]"}

	for level := '1'; level <= '9'; level++ {
		before := "*a" + string(level-1)
		entries = append(entries, "a"+string(level)+": &a"+string(level)+" ["+strings.Repeat(before+", ", 8)+before+"]")
	}

	return "{" + strings.Join(entries, ", ") + "}"
}

// many returns texts from a format with the numbers from 0.
func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}

	return b.String()
}

// release has the files of a release.
type release struct {
	components, metadata string
	reason               string // why it is refused; empty if it is accepted
}

// hostile returns components that try to exhaust memory or time, and others that are as close to the limits as they can
// be.
func hostile() map[string]release {
	return map[string]release{
		"aliases of an object": {configMap + "data: " + aliasBomb() + "\n", series, "once its aliases are expanded"},
		"aliases of many objects": {
			many(200, "---\n"+configMap+"n: %d\na: &a "+strings.Repeat("x", 8<<10)+"\nb: ["+strings.Repeat("*a,", 900)+"]\n"),
			series, "the document brings the total to more than 16 MiB",
		},
		"aliases of metadata": {configMap, series + "more: " + aliasBomb() + "\n", "once its aliases are expanded"},
		"deep nesting":        {configMap + "data: " + strings.Repeat("[", 90000) + "\n", series, "exceeded max depth"},
		"deep lists": {
			crdHead + strings.Repeat("[", 900) + strings.Repeat("]", 900) + "\n", series, "100 levels",
		},
		"a list without its end": {configMap + "data: [" + strings.Repeat("x, ", 1<<20) + "\n", series, "100000 values"},
		"a long list":            {configMap + "data: [" + strings.Repeat("1,", 15<<19) + "]\n", series, "larger than 4 MiB"},
		"a long metadata":        {configMap, series + "more: [" + strings.Repeat("1,", 1<<20) + "]\n", "100000 values"},
		"a large file":           {configMap + "data: " + strings.Repeat("x", 31<<20), series, "larger than 16 MiB"},
		"many lists": {
			many(9, "---\n"+configMap+"n: %d\ndata: ["+strings.Repeat("1,", 90000)+"]\n"), series, "300000 values",
		},
		"many documents":        {strings.Repeat("---\n"+configMap, 5000), series, "more than 2000 documents"},
		"many separators":       {strings.Repeat("---\n", 4<<20), series, "more than 2000 documents"},
		"expressions in a line": {configMap + "data: " + strings.Repeat("${A:=b}", 1<<17), series, "2000 expressions"},
		"nested replacements": {
			configMap + "b: ${A}\ndata: " + strings.Repeat("${A//e/", 25) + "x" + strings.Repeat("}", 25),
			series, "more than 20 expressions contain each other",
		},
		"variables in defaults": {
			configMap + "a: " + strings.Repeat("${A:=", 2<<20) + strings.Repeat("}", 2<<20), series,
			"more than 20 expressions contain each other",
		},
		"many variables in defaults": {
			configMap + "data:\n" + many(990, "- ${A%[1]d:="+nestedDefaults(19, strings.Repeat("x", 500))+"}\n"), series,
			"larger than 512 KiB",
		},
		"expressions that hide a deep object": {
			configMap + "data: [${A:='}," + strings.Repeat("{a: ", 900) + strings.Repeat("}", 900) + ",${B:='}]",
			series, "neither a value, nor a key",
		},
		"large objects": {
			many(5, "---\n"+configMap+"n: %d\ndata: "+strings.Repeat("x", 1<<20)+"\n"), series, "larger than 4 MiB",
		},
		"many lines at the last level": {
			configMap + "data: " + strings.Repeat("{a: ", 90) + `"` + strings.Repeat(`x\n`, 600<<10) + `"` +
				strings.Repeat("}", 90), series, "larger than 16 MiB once all lines are indented",
		},
		"many variables":     {configMap + "data:\n" + many(1001, "- ${A%d:=b}\n"), series, "1000 expressions"},
		"objects with lists": {configMap + "data: [" + strings.Repeat("1,", 90000) + "]\n", series, "30000 values"},

		"lists at the limit": {
			configMap + "data: [" + strings.Repeat("1,", 29900) + "]\n", series, "",
		},
		"maps at the limit": {
			configMap + "data: {" + many(29900, "a%d: b,") + "}\n", series, "",
		},
		"texts at the limit": {
			configMap + "data: " + strings.Repeat("x", 4<<20-200) + "\n", series, "",
		},
		"expressions in keys below each other at the limit": {configMap + nestedKeys(90), series, ""},
		"expressions in keys of lists below each other at the limit": {
			configMap + "data: " + strings.Repeat("{'${A:=a}': [", 45) + strings.Repeat("]}", 45), series, "",
		},
		"expressions in keys at the limit": {
			configMap + "data: {" + many(990, "'${A%d:=a%[1]d}': ["+strings.Repeat("[x],", 13)+"],") + "}", series, "",
		},
		"documents at the limit": {
			many(1990, "---\n"+configMap+"n: %d\ndata: "+strings.Repeat("x", 900)+"\n"), series, "",
		},
		"variables at the limit": {
			configMap + "data:\n" + many(990, "- ${A%d:=b}\n"), series, "",
		},
		"variables in defaults at the limit": {
			configMap + "data:\n" + many(390, "- ${A%[1]d:="+nestedDefaults(19, "x")+"}\n"), series, "",
		},
		"uses of a variable at the limit": {
			configMap + "data:\n  " + strings.Repeat("x", 1000) + ":\n" +
				many(1990, "  - {name: a%d, "+strings.Repeat("y", 300)+": \"${A:=b}\"}\n"), series, "",
		},
		"expressions in comments after a long text": {
			configMap + "data:\n  a: |\n    " + strings.Repeat("x\n    ", 600<<10) + "\n" + strings.Repeat("# ${A:=b}\n", 1990),
			series, "",
		},
		"expressions in a long line": {
			configMap + "data: {" + many(990, "a%d: ["+strings.Repeat("'${A:=b}', ", 2)+strings.Repeat("x", 2000)+"], ") + "}",
			series, "",
		},
		"flags at the limit": {
			deploymentHead + "args: [" + many(29900, "--a%d=b,") + "]}]}}}", series, "",
		},
		"containers at the limit": {
			deploymentHead + "}," + many(9900, "{name: m%d, image: a.b/c},") + "]}}}", series, "",
		},
		"a CRD at the limit": {
			crdHead + strings.Repeat("{b: ", 90) + "[" + strings.Repeat("1,", 90000) + "]" + strings.Repeat("}", 90), series, "",
		},
		"an anchor at the limit": {
			configMap + "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [*a,*a,*a,*a,*a,*a]\n", series, "",
		},
	}
}

// nestedDefaults returns an expression in whose default is another one, and so on, and a text in the last one.
func nestedDefaults(depth int, text string) string {
	return strings.Repeat("${A:=", depth) + text + strings.Repeat("}", depth)
}

// nestedKeys returns a map whose only key has an expression, and a map of the same kind as its value, and so on.
func nestedKeys(depth int) string {
	var b strings.Builder

	b.WriteString("data:\n")

	for level := range depth {
		fmt.Fprintf(&b, "%*s${A:=a}:\n", level+1, "")
	}

	fmt.Fprintf(&b, "%*sx: y\n", depth+1, "")

	return b.String()
}

// hostileFolder is the environment variable that tells a copy of this program which release to build.
const hostileFolder = "CAPSTAN_TEST_HOSTILE"

// The files in the folder.
const componentsFile, metadataFile, reasonFile = "components", "metadata", "reason"

// TestBuildHostileComponents: whatever the components are, building the chart needs at most 200 MiB
// and some seconds, or is refused. Each is built in a process that may not have more memory.
func TestBuildHostileComponents(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is limited on Linux only")
	}

	if folder := os.Getenv(hostileFolder); folder != "" {
		buildLimited(t, folder)
		return
	}

	for name, test := range hostile() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := t.TempDir()

			for file, content := range map[string]string{
				componentsFile: test.components, metadataFile: test.metadata, reasonFile: test.reason,
			} {
				g.Expect(os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600)).To(Succeed())
			}

			child := exec.Command(os.Args[0], "-test.run", "^TestBuildHostileComponents$", "-test.v")

			child.Env = append(os.Environ(), hostileFolder+"="+folder)

			start := time.Now()
			out, err := child.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), "%.2000s", out)
			t.Logf("%v", time.Since(start))
		})
	}
}

// buildLimited builds a chart in this process, which ends if that needs too much memory.
func buildLimited(t *testing.T, folder string) {
	g := NewWithT(t)

	const allowed = 200 << 20

	read := func(file string) []byte {
		content, err := os.ReadFile(filepath.Join(folder, file))
		g.Expect(err).NotTo(HaveOccurred())

		return content
	}
	b := provider("x", string(read(componentsFile)))
	b.Metadata = read(metadataFile)
	reason := string(read(reasonFile))

	limit := dataSize(g) + allowed
	g.Expect(unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})).To(Succeed())

	start := time.Now()

	built, err := chartgen.Build(b)
	if err == nil {
		_, err = built.Archive()
	}

	t.Logf("%v for %d KiB: %.200v", time.Since(start), len(b.Components)>>10, err)
	g.Expect(time.Since(start)).To(BeNumerically("<", time.Minute), "it usually takes some seconds")

	if reason == "" {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}

	var invalid *bundle.InvalidError
	g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring(reason)))
}

// dataSize returns how much memory this process has allocated, in bytes.
func dataSize(g *WithT) uint64 {
	status, err := os.ReadFile("/proc/self/status")
	g.Expect(err).NotTo(HaveOccurred())

	_, rest, found := strings.Cut(string(status), "VmData:")
	g.Expect(found).To(BeTrue())

	var kib uint64

	_, err = fmt.Sscan(rest, &kib)
	g.Expect(err).NotTo(HaveOccurred())

	return kib << 10
}
