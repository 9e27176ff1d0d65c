package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"golang.org/x/mod/semver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/contract/lint"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// `make census` runs this with CENSUS_INSTALL. No manager runs, but on the nodes of the bed their pods become ready.
var _ = Describe("Every provider in the folder CENSUS", Ordered, func() {
	var (
		w   *world
		cli commandLine
		// repository has the providers' releases, with the contract of core.
		repository string
	)

	BeforeAll(func(ctx SpecContext) {
		if os.Getenv("CENSUS_INSTALL") == "" {
			Skip("CENSUS_INSTALL is not set: installing all providers takes minutes")
		}

		repository = withNamedExtension(os.Getenv("CENSUS"))

		// Some providers contain objects of core's kinds, for which its webhooks are called.
		w = newWorld(routed)
		startWebhooks(ctx, w, "capi-webhook-service.cluster-api-system")

		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)
		w.start()

		// Nodes of the bed have no storage; runtime-extension-nutanix claims some.
		Expect(w.client.Create(ctx, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "census"},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/census"},
				},
			},
		})).To(Succeed())

		release, err := harness.Load(ctx, testproviders.Folder(GinkgoT()), harness.Wanted{Label: v1alpha2.CoreProviderName})
		Expect(err).NotTo(HaveOccurred())
		Expect(release.Prepare(ctx, w.client)).To(Succeed())

		core := release.Resource()
		core.GetSpec().Patches = []v1alpha2.Patch{selectorless}
		Expect(w.client.Create(ctx, core)).To(Succeed())
		Eventually(w.read(ctx, core)).Should(beReady(release.Bundle.Version))
	})

	It("is installed, upgraded, rolled back and removed, or refused for a reason", func(ctx SpecContext) {
		folders, err := filepath.Glob(filepath.Join(repository, "*", "v*"))
		Expect(err).NotTo(HaveOccurred())

		versions := map[string][]string{}

		for _, folder := range folders {
			label := filepath.Base(filepath.Dir(folder))
			versions[label] = append(versions[label], filepath.Base(folder))
		}

		delete(versions, v1alpha2.CoreProviderName)

		for label := range versions {
			semver.Sort(versions[label])
		}

		var all, refused, problems int

		before := w.clusterObjects(ctx)

		for _, label := range slices.Sorted(maps.Keys(versions)) {
			i := surveyed{label: label}
			if releases := i.load(ctx, repository, versions[label]); len(releases) > 0 {
				i.run(ctx, cli, releases)
				i.remove(ctx, cli, before)
			}

			fmt.Println(i)

			all++

			switch {
			case i.problem != "":
				problems++
			case i.refusal != "":
				refused++
			}
		}

		fmt.Printf("%d providers: %d installed and removed, %d refused, %d with a problem\n",
			all, all-refused-problems, refused, problems)
		Expect(problems).To(BeZero())
	})
})

// patience is how long a step of a provider may take.
const patience = 5 * time.Minute

// surveyed is what became of a provider.
type surveyed struct {
	label string
	// versions are those that core's contract allows, oldest first.
	versions []string
	// done are the steps that succeeded, and refusal is why the next one was refused.
	done    []string
	refusal string
	// problem is what should not have happened.
	problem string
}

// String returns the row of a provider.
func (i surveyed) String() string {
	row := fmt.Sprintf("%-40s %-24s %s", i.label, strings.Join(i.versions, " "), strings.Join(i.done, ", "))
	if i.refusal != "" {
		row += "; refused: " + i.refusal
	}

	if i.problem != "" {
		row += "; PROBLEM: " + i.problem
	}

	return row
}

// load returns the releases that core's contract allows, with values for their required variables.
func (i *surveyed) load(ctx context.Context, repository string, versions []string) []*harness.Release {
	GinkgoHelper()

	var (
		releases []*harness.Release
		others   []string
	)

	for _, version := range versions {
		release, err := harness.Load(ctx, repository, harness.Wanted{Label: i.label, Version: version})
		Expect(err).NotTo(HaveOccurred())

		promised := ""
		if metadata, err := bundle.ParseMetadata(release.Bundle.Metadata); err == nil {
			promised, _ = bundle.Contract(metadata, version)
		}

		if !slices.Contains(contract.Versions, promised) {
			others = append(others, fmt.Sprintf("%s has the contract %q", version, promised))
			continue
		}

		release.Variables = requiredValues(release.Bundle)
		releases = append(releases, release)
		i.versions = append(i.versions, version)
	}

	if len(releases) == 0 {
		i.refusal = strings.Join(others, ", ")
	}

	return releases
}

// requiredValues returns values for the required variables: some providers want an image or a number.
func requiredValues(b *bundle.Bundle) map[string]string {
	built, err := chartgen.Build(b)
	if err != nil {
		return nil // as the operator finds out
	}

	required, _, err := chartgen.RequiredVariables(built)
	Expect(err).NotTo(HaveOccurred())

	var values map[string]string

	for _, value := range []string{"cmVxdWlyZWQ=", "registry.example.com/value:v1", "1"} {
		values = map[string]string{}
		variables := map[string]any{}

		for _, name := range required {
			values[name], variables[name] = value, value
		}

		if _, err := render.Manifest(built, "default", map[string]any{"variables": variables}); err == nil {
			break
		}
	}

	return values
}

// run installs the first release, upgrades to the others, and rolls back.
func (i *surveyed) run(ctx context.Context, cli commandLine, releases []*harness.Release) {
	GinkgoHelper()

	for n, release := range releases {
		step := "upgraded"
		if n == 0 {
			step = "installed"
		}

		if !i.apply(ctx, cli.w, release) {
			return
		}

		i.done = append(i.done, step)
	}

	if len(releases) == 1 {
		return
	}

	if _, failure, code := cli.run(ctx, "rollback", i.label, "--timeout", patience.String()); code != 0 {
		i.refusal = "roll back: " + lastLine(failure)
		return
	}

	i.done = append(i.done, "rolled back")
}

// apply asks for a release, and reports whether it is ready in the end.
func (i *surveyed) apply(ctx context.Context, w *world, release *harness.Release) bool {
	GinkgoHelper()
	Expect(release.Prepare(ctx, w.client)).To(Succeed())

	p := release.Resource()

	err := w.client.Create(ctx, p)
	if apierrors.IsAlreadyExists(err) {
		err = bedtest.Edit(ctx, w.client, p, func(p v1alpha2.Provider) { p.GetSpec().Version = release.Bundle.Version })
	}

	if err != nil {
		i.refusal = err.Error()
		return false
	}

	decided := i.expect(func(g Gomega) {
		g.Eventually(w.read(ctx, p)).WithTimeout(patience).Should(Or(beReady(release.Bundle.Version), beRefused()))
	})
	if decided && !v1alpha2.IsReady(p) {
		i.refusal = meta.FindStatusCondition(p.GetConditions(), v1alpha2.ReadyCondition).Message
	}

	if missing := missingReference(release.Bundle); !decided && missing != "" {
		i.refusal, i.problem = missing, ""
	}

	return decided && v1alpha2.IsReady(p)
}

// missingReference returns what lint reports about an object that a release lacks, without which its pods do not start,
// or "".
func missingReference(b *bundle.Bundle) string {
	for _, f := range lint.Bundle(b, nil) {
		if f.Level == contract.Error && strings.HasPrefix(f.Rule, "references/") {
			return f.Kind + " " + f.Object + " " + f.Message
		}
	}

	return ""
}

// expect reports whether an expectation is met. It is the provider's problem otherwise.
func (i *surveyed) expect(expectation func(Gomega)) bool {
	met := true

	expectation(NewGomega(func(message string, _ ...int) {
		met = false
		i.problem += message
	}))

	return met
}

// beRefused matches a provider that cannot be installed until something changes.
func beRefused() gomegatypes.GomegaMatcher {
	return WithTransform(func(p v1alpha2.Provider) bool {
		return meta.IsStatusConditionTrue(p.GetConditions(), v1alpha2.StalledCondition) ||
			meta.IsStatusConditionFalse(p.GetConditions(), v1alpha2.PreflightCheckCondition)
	}, BeTrue())
}

// remove removes the provider with all that it had, so that only the objects before it are left.
func (i *surveyed) remove(ctx context.Context, cli commandLine, before string) {
	GinkgoHelper()

	_, failure, code := cli.run(ctx, "delete", i.label, "--include-crd", "--include-namespace",
		"--timeout", patience.String())

	removed := i.expect(func(g Gomega) {
		g.Expect(code).To(BeZero(), failure)
		g.Eventually(func() string { return cli.w.clusterObjects(ctx) }).WithTimeout(patience).Should(Equal(before))
	})
	if removed {
		i.done = append(i.done, "removed")
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
