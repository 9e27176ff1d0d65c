package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BinVariable names a folder with the project's programs. The targets of make that test set it, and build the programs
// first.
const BinVariable = "CAPSTAN_BIN"

// The project's programs that tests run.
const (
	OperatorProgram = "operator"
	CapstanProgram  = "capstan"
)

// Program returns the path of one of the project's programs: in the folder of BinVariable if it is set, and otherwise
// built into a folder.
func Program(ctx context.Context, root, folder, name string) (string, error) {
	bin := os.Getenv(BinVariable)
	if bin == "" {
		return build(ctx, root, filepath.Join(folder, name), name, "-s -w")
	}

	path := filepath.Join(bin, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find a program in %s; run make test-binaries, or unset the variable: %w", BinVariable, err)
	}

	return path, nil
}

// BeforeVariable names the operator of another build, and BeforeCRDsVariable the folder with its CRDs.
const (
	BeforeVariable     = "BEFORE"
	BeforeCRDsVariable = "BEFORE_CRDS"
)

// Before returns the path of the operator of BeforeVariable if it is set, and otherwise of the project's own with
// another version, built into a folder.
func Before(ctx context.Context, root, folder string) (string, error) {
	if before := os.Getenv(BeforeVariable); before != "" {
		return before, nil
	}

	return build(ctx, root, filepath.Join(folder, "before"), OperatorProgram, "-s -w -X main.version=v0.0.1")
}

// build builds one of the project's programs, and returns its path.
func build(ctx context.Context, root, program, name, flags string) (string, error) {
	command := exec.CommandContext(ctx, "go", "build", "-ldflags="+flags, "-o", program, "./cmd/"+name)
	command.Dir = root

	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}

	return program, nil
}
