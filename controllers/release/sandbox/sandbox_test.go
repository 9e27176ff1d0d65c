package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// endless is a template that takes minutes and no memory.
const endless = `{{ range untilStep 0 20000 1 }}{{ range untilStep 0 20000 1 }}{{ end }}{{ end }}`

// requestOf returns a request for a chart with the files, in pairs of name and content.
func requestOf(files ...string) Request {
	request := Request{
		Files:   []chart.File{{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: x\nversion: 1.0.0\n")}},
		Release: helm.ReleaseOptions{Name: "x", Namespace: "ns", Revision: 3, IsUpgrade: true},
	}
	for i := 0; i < len(files); i += 2 {
		request.Files = append(request.Files, chart.File{Name: files[i], Data: []byte(files[i+1])})
	}

	return request
}

func template(text string) Request { return requestOf("templates/a.yaml", text) }

func TestRender(t *testing.T) {
	g := NewWithT(t)
	request := requestOf(
		"values.yaml", "a: {b: default, n: 1}\n",
		"templates/a.yaml", "kind: B\na: {{ .Values.a.b }} {{ .Values.number }} {{ .Values.half }} {{ include \"h\" . }}\n"+
			"b: {{ .Release.Revision }} {{ .Release.IsUpgrade }} {{ .Release.Namespace }}\n"+
			"c: {{ .Files.Get \"f.txt\" }}",
		"templates/empty.yaml", "{{ if false }}a: b{{ end }}\n---\n",
		"templates/_h.tpl", `{{ define "h" }}helper{{ end }}`,
		"templates/NOTES.txt", "notes of {{ .Release.Name }}",
		"f.txt", "file",
	)
	request.Values = map[string]any{"a": map[string]any{"b": "given"}, "number": int64(1000000), "half": 0.5}

	rendered, err := Render(t.Context(), "ns", request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rendered.Manifest).To(Equal("---\n# Source: x/templates/a.yaml\n" +
		"kind: B\na: given 1000000 0.5 helper\nb: 3 true ns\nc: file\n"))
	g.Expect(rendered.Notes).To(Equal("notes of x"))
	g.Expect(rendered.Chart.Metadata.Version).To(Equal("1.0.0"))
	g.Expect(rendered.Chart.Values).To(HaveKeyWithValue("a", HaveKeyWithValue("b", "default")))

	request.Values["half"] = "\xff"
	_, err = Render(t.Context(), "ns", request)
	g.Expect(err).To(MatchError(ContainSubstring("the value of half is not valid UTF-8")))
}

// TestRenderHostileCharts: no template exhausts the memory or the time of the operator.
func TestRenderHostileCharts(t *testing.T) {
	const memory = "more than 128 MiB of memory"

	for name, test := range map[string]struct {
		request Request
		reason  string
	}{
		"a large text": {template(`a: {{ repeat 600000000 "x" }}`), memory},
		"a text that doubles": {
			template(`{{ $a := "xxxxxxxx" }}{{ range until 40 }}{{ $a = print $a $a }}{{ end }}`), memory,
		},
		"a long list":     {template(`{{ range until 1000000000 }}{{ end }}`), memory},
		"an endless loop": {template(endless), "5s of processor time"},
		// Either the stack or the memory is used up first.
		"endless recursion": {template(`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`), "simplify them"},
		"many values":       {template(`a: [{{ repeat 60000 "1," }}]`), "more than 50000 values"},
		"many objects":      {template(`{{ repeat 3000 "a: b\n---\n" }}`), "more than 2000 documents"},
		"a large manifest":  {template(`a: {{ repeat 5000000 "x" }}`), "larger than 4 MiB"},
		"aliases": {
			template("a: &a {{ repeat 1000000 \"x\" }}\nb: [{{ repeat 99 \"*a,\" }}]"), "once its aliases are expanded",
		},
		"depth":            {template(`a: {{ repeat 200 "[" }}{{ repeat 200 "]" }}`), "more than 100 levels"},
		"a long error":     {template(`{{ fail (repeat 2000000 "x") }}`), "too long to be shown"},
		"values of a list": {requestOf("values.yaml", "a: ["+strings.Repeat("1,", 4<<20)+"]"), memory},
		"many default values": {
			requestOf("values.yaml", "a: ["+strings.Repeat("1,", 60000)+"]"), "default values and schema",
		},
		"an archive in charts/": {requestOf("charts/a.tgz", "no archive"), "error unpacking subchart"},
		"a dependency": {
			requestOf("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 2.0.0\n"),
			"it has dependencies, which charts of providers do not have; install it with helm, Flux or Argo CD",
		},
		"a hook": {
			template("kind: Job\nmetadata:\n  name: h\n  annotations: {helm.sh/hook: \"pre-install,test\"}\n"),
			"Job h is a hook of Helm (helm.sh/hook: pre-install,test), which charts of providers do not have; " +
				"install the chart with helm, Flux or Argo CD",
		},
		"an error of its own": {template(`{{ fail "wrong value" }}`), "wrong value"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			start := time.Now()

			_, err := Render(t.Context(), "ns", test.request)
			t.Logf("%v: %.300v", time.Since(start), err)

			var chartErr *ChartError
			g.Expect(errors.As(err, &chartErr)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(test.reason)))
		})
	}
}

// TestRenderWithoutAccess: a template reads neither objects of the cluster, nor names of the network,
// nor files, nor the environment.
func TestRenderWithoutAccess(t *testing.T) {
	t.Setenv("CAPSTAN_TEST_SECRET", "secret")

	for text, want := range map[string]string{
		`{{ lookup "v1" "Secret" "kube-system" "" }}`: "map[]",
		`{{ getHostByName "localhost" }}`:             "",
		`{{ .Files.Get "/etc/passwd" }}`:              "",
	} {
		rendered, err := Render(t.Context(), "ns", template("a: '"+text+"'"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(rendered.Manifest).To(HaveSuffix("\na: '"+want+"'\n"), text)
	}

	_, err := Render(t.Context(), "ns", template(`{{ env "CAPSTAN_TEST_SECRET" }}`))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring(`function "env" not defined`)))
}

// TestSchemasAreNotFetched: neither files nor servers are read, whatever keyword refers to them.
func TestSchemasAreNotFetched(t *testing.T) {
	const (
		draft2019 = `"$schema": "https://json-schema.org/draft/2019-09/schema"`
		draft2020 = `"$schema": "https://json-schema.org/draft/2020-12/schema"`
	)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })

	connected := make(chan struct{}, 100)

	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}

			connected <- struct{}{}

			_ = connection.Close()
		}
	}()

	file := filepath.Join(t.TempDir(), "schema.json")
	NewWithT(t).Expect(os.WriteFile(file, []byte("{}"), 0o600)).To(Succeed())

	for _, address := range []string{"http://" + listener.Addr().String() + "/schema.json", "file://" + file} {
		for _, schema := range []string{
			`{"$ref": %q}`, `{"$schema": %q}`, `{` + draft2020 + `, "$dynamicRef": %q}`,
			`{"properties": {"a": {"$schema": %q, "$id": "b"}}}`, `{` + draft2019 + `, "$recursiveRef": %q}`,
			`{"$id": %q, "$ref": "#/definitions/a"}`, `{"$id": %q, ` + draft2020 + `, "$dynamicRef": "#meta"}`,
		} {
			_, err := Render(t.Context(), "ns", requestOf(
				"values.yaml", "a: b\n", "values.schema.json", fmt.Sprintf(schema, address),
			))
			NewWithT(t).Expect(err).To(HaveOccurred(), schema)
			NewWithT(t).Expect(connected).NotTo(Receive(), schema)
		}
	}
}

// TestRenderStops: rendering ends with its context.
func TestRenderStops(t *testing.T) {
	g := NewWithT(t)

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()

	start := time.Now()
	_, err := Render(ctx, "ns", template(endless))
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(time.Since(start)).To(BeNumerically("<", 4*time.Second))
}

// TestRenderBesideHostileCharts: a chart that takes all of its time does not delay another tenant's.
func TestRenderBesideHostileCharts(t *testing.T) {
	g := NewWithT(t)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	ended := make(chan struct{}, 3)

	for range 3 {
		go func() {
			_, _ = Render(ctx, "hostile", template(endless))

			ended <- struct{}{}
		}()
	}

	g.Eventually(func() error {
		limited, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()

		release, err := limit.Content.Acquire(limited, "hostile", limit.RenderMemory)
		if err == nil {
			release()
		}

		return err
	}).Should(HaveOccurred(), "the hostile tenant has all that it can have")

	_, err := Render(t.Context(), "ns", template("a: b"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ended).NotTo(Receive())
}

// BenchmarkRender measures what a child process costs, with a chart that costs nothing.
func BenchmarkRender(b *testing.B) {
	for b.Loop() {
		if _, err := Render(b.Context(), "ns", template("a: b")); err != nil {
			b.Fatal(err)
		}
	}
}
