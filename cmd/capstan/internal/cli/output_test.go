package cli

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// printer parses flags and returns the printer for a buffer.
func printer(t *testing.T, args ...string) (*Printer, error) {
	t.Helper()

	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := AddOutputFlags(flags)
	NewWithT(t).Expect(flags.Parse(args)).To(Succeed())

	return f.Printer(&bytes.Buffer{})
}

func TestColor(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		color bool
	}{
		"default":         {nil, false},
		"auto, in a file": {[]string{"--color", "auto"}, false},
		"always":          {[]string{"--color", "always"}, true},
		"never":           {[]string{"--color", "never"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, err := printer(t, c.args...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Color).To(Equal(c.color))
			g.Expect(p.Width).To(BeZero())
		})
	}

	_, err := printer(t, "--color", "blue")
	NewWithT(t).Expect(err).To(MatchError(`unknown --color "blue"; use auto, always or never`))
}

func TestOutputFormats(t *testing.T) {
	g := NewWithT(t)

	for _, format := range []string{"table", "json", "yaml"} {
		p, err := printer(t, "-o", format)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Format).To(Equal(format))
	}

	_, err := printer(t, "-o", "text")
	g.Expect(err).To(MatchError(`unknown --output "text"; use one of table, json, yaml`))
}

func TestPrint(t *testing.T) {
	value := map[string]string{"a": "<b>"}

	for format, want := range map[string]string{
		FormatTable: "human\n",
		FormatJSON:  "{\n  \"a\": \"<b>\"\n}\n",
		FormatYAML:  "a: <b>\n",
	} {
		var out bytes.Buffer

		p := &Printer{Writer: &out, Format: format}
		err := p.Print(value, func() error {
			p.Printf("human")
			return nil
		})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(out.String()).To(Equal(want))
	}
}

func TestTable(t *testing.T) {
	rows := []Row{{Cells: []string{"a", "long cell", ""}}, {Cells: []string{"größer", "b", "c"}, Style: Red}}

	for _, c := range []struct {
		printer Printer
		header  []string
		want    string
	}{
		{Printer{}, nil, "a        long cell\ngrößer   b           c\n"},
		{Printer{}, []string{"X", "Y", "Z"}, "X        Y           Z\na        long cell\ngrößer   b           c\n"},
		{
			Printer{Color: true},
			[]string{"X", "Y", "Z"},
			"\x1b[1mX        Y           Z\x1b[0m\na        long cell\n\x1b[31mgrößer   b           c\x1b[0m\n",
		},
	} {
		var out bytes.Buffer

		c.printer.Writer = &out
		NewWithT(t).Expect(c.printer.Table(c.header, rows)).To(Succeed())
		NewWithT(t).Expect(out.String()).To(Equal(c.want))
	}
}

func TestTree(t *testing.T) {
	root := Node{Text: "root", Children: []Node{
		{Text: "one two three four five six seven", Children: []Node{{Text: "leaf", Style: Green}}},
		{Text: "last"},
	}}

	for _, c := range []struct {
		printer Printer
		want    string
	}{
		{Printer{}, "root\n├─ one two three four five six seven\n│  └─ leaf\n└─ last\n"},
		{Printer{Width: 25}, "root\n├─ one two three four\n│  │ five six seven\n│  └─ leaf\n└─ last\n"},
		{
			Printer{Color: true},
			"root\n├─ one two three four five six seven\n│  └─ \x1b[32mleaf\x1b[0m\n└─ last\n",
		},
	} {
		var out bytes.Buffer

		c.printer.Writer = &out
		c.printer.Tree(root)
		NewWithT(t).Expect(out.String()).To(Equal(c.want))
	}
}

func TestSize(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Size(512)).To(Equal("0.5 KiB"))
	g.Expect(Size(3 << 20)).To(Equal("3.0 MiB"))
	g.Expect(Size(5 << 29)).To(Equal("2.5 GiB"))
}

func TestPrintedText(t *testing.T) {
	hostile := "a\x1b[2Jb\x1b]0;c\ad\x1b[8me\u009bf\u202eg\n\th"

	for name, c := range map[string]struct {
		print func(*Printer)
		color bool
		want  string
	}{
		"a line": {
			func(p *Printer) { p.Printf("%s", hostile) }, false, "a [2Jb ]0;c d [8me fg\n\th\n",
		},
		"a line in a style": {
			func(p *Printer) { p.Printf("%s", p.Paint(Red, hostile)) }, true,
			"\x1b[31ma [2Jb ]0;c d [8me fg\n\th\x1b[0m\n",
		},
		"a style without colors": {func(p *Printer) { p.Printf("\x1b[31mx") }, false, " [31mx\n"},
		"a cell": {
			func(p *Printer) { _ = p.Table(nil, []Row{{Cells: []string{hostile, "i"}}}) }, false,
			"a [2Jb ]0;c d [8me fg  h   i\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer

			c.print(&Printer{Writer: &out, Color: c.color})
			NewWithT(t).Expect(out.String()).To(Equal(c.want))
		})
	}
}

func TestManifests(t *testing.T) {
	g := NewWithT(t)

	var out bytes.Buffer

	role := &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "tiny", Name: "installer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}
	printer := &Printer{Writer: &out, Format: FormatYAML}
	g.Expect(printer.Manifests([]client.Object{role, role}, "")).To(Succeed())

	const want = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: installer
  namespace: tiny
rules:
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - get
`

	g.Expect(out.String()).To(Equal(want + want))
}
