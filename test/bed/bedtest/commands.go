package bedtest

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/capstan-project/capstan/test/bed"
)

// Output runs a command, which must succeed, and returns its standard output.
func Output(t TB, cmd *exec.Cmd) string {
	t.Helper()

	var stderr bytes.Buffer

	cmd.Stderr = &stderr

	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(cmd.Args, " "), err, &stderr)
	}

	return string(out)
}

// Apply creates or updates objects with `kubectl apply`, as a user would.
func Apply(ctx context.Context, t TB, b *bed.Bed, objects string, flags ...string) {
	t.Helper()

	cmd := b.Command(ctx, "kubectl", append([]string{"apply", "-f", "-"}, flags...)...)
	cmd.Stdin = strings.NewReader(objects)
	Output(t, cmd)
}

// Launch starts a program that the bed does not manage, until the test, or the suite or container of specs whose
// setup calls it, ends. What the program has printed is logged then.
func Launch(t TB, b *bed.Bed, cmd *exec.Cmd) {
	t.Helper()

	path := filepath.Join(t.TempDir(), "log")

	output, err := os.Create(path)
	if err != nil {
		t.Fatalf("%v", err)
	}

	cmd.Stdout, cmd.Stderr = output, output

	if err := b.Launch(cmd); err != nil {
		t.Fatalf("start %s: %v", cmd, err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if the process has ended
		_ = cmd.Wait()
		_ = output.Close()

		text, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("read what %s has printed: %v", cmd, err)
		}

		t.Logf("%s:\n%s", cmd, text)
	})
}

// FreeAddress returns an address of this machine on which nothing listens.
func FreeAddress(t TB) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer listener.Close()

	return listener.Addr().String()
}
