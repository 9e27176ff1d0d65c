package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// PackCertManager packs cert-manager's chart, which is part of its Go module, into a folder, and returns the path of
// the archive. The chart has the version of the module, such as v1.21.2.
func (s *Set) PackCertManager(ctx context.Context, folder string) (archive, version string, err error) {
	pinned := artifact{pins: "cert-manager"}

	listed, err := s.goCommand(ctx, pinned, "mod", "download", "-json", "github.com/cert-manager/cert-manager")
	if err != nil {
		return "", "", err
	}

	var module struct{ Dir, Version string }
	if err := json.Unmarshal([]byte(listed), &module); err != nil {
		return "", "", fmt.Errorf("find the module of cert-manager: %w", err)
	}

	pack := exec.CommandContext(ctx, s.Program(Helm3), "package", filepath.Join(module.Dir, "deploy/charts/cert-manager"),
		"--version", module.Version, "--app-version", module.Version, "--destination", folder)

	pack.Env = []string{"HOME=" + folder, "PATH=" + os.Getenv("PATH")}
	if out, err := pack.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("pack the chart of cert-manager: %w\n%s", err, out)
	}

	return filepath.Join(folder, "cert-manager-"+module.Version+".tgz"), module.Version, nil
}
