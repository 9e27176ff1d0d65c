package upgrade

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/harness"
)

// root is the module's root.
const root = "../.."

// release is a program of the operator, with the sources that it was built from.
type release struct{ source, program string }

// user is the operator's name in the audit log: that of the folder of its sources.
func (r release) user() string { return harness.OperatorUser + "-" + filepath.Base(r.source) }

// today returns the operator of this commit.
func today(ctx context.Context) release {
	GinkgoHelper()

	source, err := filepath.Abs(root)
	Expect(err).NotTo(HaveOccurred())
	program, err := harness.Program(ctx, root, GinkgoT().TempDir(), harness.OperatorProgram)
	Expect(err).NotTo(HaveOccurred())

	return release{source: source, program: program}
}

// previous returns the operator of a commit, which is built once. It skips the test without that part of the history.
func previous(ctx context.Context, commit string) release {
	GinkgoHelper()

	folder, err := filepath.Abs(filepath.Join(root, "bin", "upgrade"))
	Expect(err).NotTo(HaveOccurred())

	source := filepath.Join(folder, commit[:12])
	built := release{source: source, program: filepath.Join(source, "operator")}

	if _, err := os.Stat(built.program); err == nil {
		return built
	}

	shallow, err := git(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		Skip("this is no clone of the repository: " + err.Error())
	}

	if _, err := git(ctx, "cat-file", "-e", commit+"^{commit}"); err != nil && shallow == "true" {
		Skip("the clone is shallow and lacks " + commit + ", the previous release; get it with `git fetch --unshallow`")
	}

	Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	unpacked, err := os.MkdirTemp(folder, "source-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, unpacked)

	archive := filepath.Join(GinkgoT().TempDir(), "source.tar")
	_, err = git(ctx, "archive", "--output="+archive, commit)
	Expect(err).NotTo(HaveOccurred())
	out, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", unpacked).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))

	_, err = harness.Build(ctx, unpacked, unpacked, harness.OperatorProgram)
	Expect(err).NotTo(HaveOccurred())

	// Another test may have built it meanwhile.
	if err := os.Rename(unpacked, source); err != nil {
		Expect(built.program).To(BeAnExistingFile(), err.Error())
	}

	return built
}

// git runs git in the repository.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}
