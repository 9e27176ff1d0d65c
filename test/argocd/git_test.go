package argocd

import (
	"context"
	"maps"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// repository is a Git repository that is served by HTTP.
type repository struct {
	url    string
	folder string // a clone
}

// newRepository serves an empty repository until the container of specs ends.
func newRepository(ctx context.Context) *repository {
	GinkgoHelper()

	dir := GinkgoT().TempDir()
	r := &repository{folder: dir}
	programs := strings.TrimSpace(r.git(ctx, "--exec-path"))

	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(programs, "git-http-backend"),
		Dir:  dir,
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	})
	DeferCleanup(server.Close)

	r.git(ctx, "init", "--quiet", "--bare", "--initial-branch=main", "fleet.git")
	r.git(ctx, "clone", "--quiet", "fleet.git", "clone")

	r.folder = filepath.Join(dir, "clone")
	r.url = server.URL + "/fleet.git"

	return r
}

// git runs Git in the clone.
func (r *repository) git(ctx context.Context, args ...string) string {
	GinkgoHelper()

	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.folder
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.folder, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "git %s: %s", strings.Join(args, " "), out)

	return string(out)
}

// commit writes files, removes those without content, and publishes that.
func (r *repository) commit(ctx context.Context, files map[string]string) {
	GinkgoHelper()

	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(r.folder, name)
		if files[name] == "" {
			Expect(os.Remove(path)).To(Succeed())
			continue
		}

		Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		Expect(os.WriteFile(path, []byte(files[name]), 0o600)).To(Succeed())
	}

	r.git(ctx, "add", "--all")
	r.git(ctx, "commit", "--quiet", "--message", "Change the fleet")
	r.push(ctx)
}

// revert undoes a commit with another one.
func (r *repository) revert(ctx context.Context, commit string) {
	GinkgoHelper()

	r.git(ctx, "revert", "--no-edit", commit)
	r.push(ctx)
}

func (r *repository) push(ctx context.Context) {
	GinkgoHelper()
	r.git(ctx, "push", "--quiet", "origin", "HEAD:main")
}

// head returns the last commit.
func (r *repository) head(ctx context.Context) string {
	GinkgoHelper()
	return strings.TrimSpace(r.git(ctx, "rev-parse", "HEAD"))
}
