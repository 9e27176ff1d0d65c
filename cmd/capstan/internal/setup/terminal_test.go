package setup

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// testTerminal is a terminal with a user.
type testTerminal struct {
	// keyboard is what the user types on, and device what a program reads and writes.
	keyboard, device *os.File
	// screen has all that was shown.
	screen *gbytes.Buffer
}

func newTestTerminal(t *testing.T, columns uint16) *testTerminal {
	t.Helper()
	t.Setenv("TERM", "xterm")

	g := NewWithT(t)
	keyboard, device, err := pty.Open()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pty.Setsize(device, &pty.Winsize{Rows: 24, Cols: columns})).To(Succeed())

	terminal := &testTerminal{keyboard: keyboard, device: device, screen: gbytes.NewBuffer()}

	go func() { _, _ = io.Copy(terminal.screen, keyboard) }()

	t.Cleanup(func() {
		_ = device.Close()
		_ = keyboard.Close()
	})

	return terminal
}

// options returns the options of a command that runs on the terminal.
func (t *testTerminal) options() *options {
	return &options{Options: &cli.Options{
		IOStreams: genericiooptions.IOStreams{In: t.device, Out: t.device, ErrOut: t.device},
	}}
}

func (t *testTerminal) answer(g Gomega, prompt, line string) {
	g.Eventually(t.screen).Should(gbytes.Say(prompt + ` of infrastructure-aws \(input is not shown\): `))

	_, err := t.keyboard.WriteString(line + "\n")
	g.Expect(err).NotTo(HaveOccurred())
}

// aws returns a plan for a provider with variables.
func aws(variables ...variable) *setupPlan {
	p := &provider{resource: v1alpha2.InfrastructureProviderType.New(), variables: variables}
	p.resource.SetName("aws")

	return &setupPlan{providers: []*provider{p}}
}

func TestPrompt(t *testing.T) {
	g := NewWithT(t)
	terminal := newTestTerminal(t, 80)
	plan := aws(variable{name: "A", required: true}, variable{name: "B", required: true}, variable{name: "C"},
		variable{name: "D", required: true, value: "d", from: "environment"})

	done := make(chan error, 1)
	go func() { done <- terminal.options().prompt(t.Context(), plan) }()

	terminal.answer(g, "A", "secret of a")
	terminal.answer(g, "B", "")
	g.Eventually(done).Should(Receive(BeNil()))

	g.Expect(plan.providers[0].variables).To(HaveExactElements(
		variable{name: "A", required: true, value: "secret of a", from: "prompt"},
		variable{name: "B", required: true}, variable{name: "C"},
		variable{name: "D", required: true, value: "d", from: "environment"}))
	g.Expect(plan.incomplete()).To(MatchError(ContainSubstring("no value: B of infrastructure-aws;")))
	g.Expect(string(terminal.screen.Contents())).NotTo(ContainSubstring("secret"))
}

// TestInterruptedPrompt: the command ends at once, and the terminal shows input again.
func TestInterruptedPrompt(t *testing.T) {
	g := NewWithT(t)
	terminal := newTestTerminal(t, 80)
	fd := int(terminal.device.Fd())
	before, err := term.GetState(fd)
	g.Expect(err).NotTo(HaveOccurred())

	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)

	go func() { done <- terminal.options().prompt(ctx, aws(variable{name: "A", required: true})) }()

	g.Eventually(func() (*term.State, error) { return term.GetState(fd) }).ShouldNot(Equal(before), "input is not shown")
	interrupt()
	g.Eventually(done).Should(Receive(MatchError("nothing was changed: read A: interrupted")))
	g.Expect(term.GetState(fd)).To(Equal(before))
}

func TestBars(t *testing.T) {
	const columns = 60

	g := NewWithT(t)
	terminal := newTestTerminal(t, columns)
	core := &progress{resource: &v1alpha2.CoreProvider{}}
	core.resource.SetName("cluster-api")
	core.resource.SetGeneration(1)

	docker := &progress{resource: &v1alpha2.InfrastructureProvider{}}
	docker.resource.SetName("docker")
	docker.resource.SetGeneration(1)
	conditions.MarkFalse(docker.resource, v1alpha2.ReadyCondition, "Some", "%s", strings.Repeat("waiting ", 20)+"\nlong")

	v := newView(terminal.options())
	v.draw([]*progress{core, docker})
	g.Eventually(terminal.screen).Should(gbytes.Say(
		`\x1b\[K░{20} cluster-api .*\r\n\x1b\[K░{20} infrastructure-docker  .*…\r\n`))

	core.done = true

	conditions.MarkTrue(docker.resource, v1alpha2.PreflightCheckCondition, "Some", "")
	v.draw([]*progress{core, docker})
	g.Eventually(terminal.screen, time.Second).Should(gbytes.Say(
		`\x1b\[2A\x1b\[K█{20} cluster-api .*\r\n\x1b\[K█{8}░{12} infrastructure-docker .*…\r\n`), "in the same lines")

	for line := range strings.SplitSeq(string(terminal.screen.Contents()), "\r\n") {
		line = strings.NewReplacer("\x1b[K", "", "\x1b[2A", "").Replace(line)
		g.Expect(len([]rune(line))).To(BeNumerically("<", columns), line)
	}
}
