package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/fakesource"
)

var _ = Describe("Automatic upgrades", Ordered, func() {
	var (
		w      *world
		folder string
	)

	BeforeAll(func(ctx SpecContext) {
		folder = GinkgoT().TempDir()
		w = sharedWorld(ctx)
	})

	// install installs v1.0.0 of a provider that upgrades automatically.
	install := func(ctx context.Context, name string, policy v1alpha2.UpgradePolicy) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		t := newTiny(name, "v1.0.0")
		t.publish(folder)
		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())

		p := t.resource()
		p.Spec.Version = "~1.0"
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: folder}
		p.Spec.Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 4 * time.Second}}
		p.Spec.UpgradePolicy = &policy
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		return p
	}

	// lookAgain makes the operator ask the source of a provider.
	lookAgain := func(ctx context.Context, p v1alpha2.Provider) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: time.Now().String()})
		})
	}

	It("take a patch in the window, and give up one that fails", func(ctx SpecContext) {
		const name = "patch-releases"

		halfAYear := time.Now().UTC().AddDate(0, 6, 0)
		p := install(ctx, name, v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch, Window: windowAt(halfAYear)})

		By("publishing a patch while the window is closed")
		newTiny(name, "v1.0.1").publish(folder)
		lookAgain(ctx, p)
		Eventually(w.read(ctx, p)).Should(HaveField("Status.AutomaticUpgrade.Pending", gstruct.PointTo(
			gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
				"Version": Equal("v1.0.1"), "Message": HavePrefix("waits for the window, which opens at "),
				"NotBefore": gstruct.PointTo(HaveField("Time", BeTemporally("~", halfAYear, 24*time.Hour))),
			}))))
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(beReady("v1.0.0"))

		By("opening the window in a moment, before which a newer patch is published")

		opens := time.Now().Add(10 * time.Second).Truncate(time.Minute).Add(time.Minute)

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().UpgradePolicy.Window = windowAt(opens) })
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), HaveField(
			"Status.AutomaticUpgrade.Pending.NotBefore.Time", BeTemporally("==", opens))))
		newTiny(name, "v1.0.2").publish(folder)
		newTiny(name, "v1.0.3-rc.0").publish(folder)
		newTiny(name, "v1.1.0").publish(folder)

		Eventually(w.read(ctx, p)).WithTimeout(2 * time.Minute).Should(
			And(beReady("v1.0.2"), upgraded("v1.0.2", v1alpha2.UpgradeSucceeded)))
		Expect(p.Status.AutomaticUpgrade.Last.Time.Time).To(BeTemporally(">=", opens))
		Expect(p.Status.History).To(HaveLen(2), "v1.0.1 was left out")
		Expect(p.Spec.Version).To(Equal("~1.0"))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(HaveField("Reason", v1alpha2.AutomaticUpgradeReason),
			HaveField("Note", HavePrefix("Upgrading from v1.0.0 to v1.0.2, within the window until ")))))

		By("publishing a patch that does not become healthy")
		neverRunning(newTiny(name, "v1.0.4")).publish(folder)
		w.restart()
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.2"), upgraded("v1.0.4", v1alpha2.UpgradeFailed),
			HaveField("Status.AutomaticUpgrade.Last.Message", HavePrefix("not healthy within 4s: Deployment"))))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(HaveField("Reason", v1alpha2.AutomaticUpgradeFailedReason),
			HaveField("Note", ContainSubstring("v1.0.4 failed, given up until a newer version exists: ")))))

		By("restarting the operator")

		revision := p.Status.Release.Revision

		newTiny(name, "v1.2.0").publish(folder)
		w.restart()
		Eventually(w.read(ctx, p)).Should(
			HaveField("Status.AvailableUpgrades", ContainElement(HaveField("Version", "v1.2.0"))), "the source was asked")
		Consistently(w.read(ctx, p)).WithTimeout(3 * quietPeriod).Should(And(
			beReady("v1.0.2"), HaveField("Status.Release.Revision", revision)))

		By("publishing a newer patch")
		newTiny(name, "v1.0.5").publish(folder)
		w.restart()
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.5"), upgraded("v1.0.5", v1alpha2.UpgradeSucceeded)))
		Expect(w.client.Delete(ctx, p)).To(Succeed())
		Eventually(gone(ctx, w, p)).Should(BeTrue())
	})

	It("go to one minor version after the other, and stop at one that fails", func(ctx SpecContext) {
		const name = "minor-releases"

		p := install(ctx, name, v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradeMinor})
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = ">=1.0 <2.0" })

		neverRunning(newTiny(name, "v1.1.0")).publish(folder)
		newTiny(name, "v1.2.0").publish(folder)
		w.restart()

		stopped := beReadyWith(v1alpha2.HealthyReason, "v1.0.0 is healthy; the automatic upgrade to v1.1.0 is blocked: it "+
			"has failed, and no minor version is skipped, so a newer version of v1.1 comes next")
		Eventually(w.read(ctx, p)).Should(And(stopped, upgraded("v1.1.0", v1alpha2.UpgradeFailed)))
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(stopped)

		By("publishing a patch of the minor version that is installed")
		newTiny(name, "v1.0.1").publish(folder)
		w.restart()
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.1"), upgraded("v1.0.1", v1alpha2.UpgradeSucceeded),
			HaveField("Status.AutomaticUpgrade.Pending.Version", "v1.1.0")))

		By("publishing a patch of the one that has failed")
		newTiny(name, "v1.1.1").publish(folder)
		w.restart()
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.2.0"), upgraded("v1.2.0", v1alpha2.UpgradeSucceeded)))

		var healthy []string

		for _, revision := range p.Status.History {
			if revision.Healthy {
				healthy = append(healthy, revision.Version)
			}
		}

		Expect(slices.Compact(healthy)).To(HaveExactElements("v1.2.0", "v1.1.1", "v1.0.1", "v1.0.0"))

		By("skipping one on request")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Version, p.GetSpec().UpgradePolicy = "v1.0.1", nil
		})
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.1"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.2.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))
		Eventually(w.events(ctx, p)).Should(ContainElement(And(
			HaveField("Reason", v1alpha2.MinorVersionsSkippedReason),
			HaveField("Note", HavePrefix("v1.2.0 skips v1.1: a provider may need each minor version; ")))))
	})

	It("ask the source again only once something has changed since a check has prevented them", func(ctx SpecContext) {
		const name = "prevented"

		server := &fakesource.Server{}
		Expect(server.Start()).To(Succeed())
		DeferCleanup(server.Stop)

		// needs returns a version whose manager needs a variable.
		needs := func(version, variable string) tiny {
			t := newTiny(name, version)
			t.components = strings.Replace(t.components, "--level=", "--region=${"+variable+"}\", \"--level=", 1)

			return t
		}
		files := func(t tiny) map[string][]byte {
			return map[string][]byte{"metadata.yaml": []byte(t.metadata), "infrastructure-components.yaml": []byte(t.components)}
		}
		publish := func(t tiny) { server.Publish("owner/"+name, t.version, files(t)) }
		fetched := func(version string) int {
			return len(server.Requests("/" + version + "/infrastructure-components.yaml"))
		}

		t := newTiny(name, "v1.0.0")
		publish(t)

		variables := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "variables"}}
		p := t.resource()
		p.Spec.Version, p.Spec.SecretName = "~1.0", variables.Name
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
			URL: server.URL() + "/owner/" + name + "/releases/latest/infrastructure-components.yaml",
		}
		p.Spec.UpgradePolicy = &v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradePatch}

		for _, o := range []client.Object{t.namespace(), variables, p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		// touch has the resource reconciled several times.
		touch := func() {
			GinkgoHelper()

			reads := func() int {
				return len(w.requests(func(r bed.Request) bool {
					return r.Verb == "get" && r.Resource == "secrets" && r.Namespace == name && r.Name == variables.Name
				}))
			}

			for range 5 {
				before := reads()

				update(ctx, w, p, func(p v1alpha2.Provider) { p.SetLabels(map[string]string{"reads": fmt.Sprint(before)}) })
				Eventually(reads).Should(BeNumerically(">", before))
			}
		}
		blocked := func(version string) gomegatypes.GomegaMatcher {
			return HaveField("Status.AutomaticUpgrade.Pending", gstruct.PointTo(gstruct.MatchFields(
				gstruct.IgnoreExtras, gstruct.Fields{"Version": Equal(version), "Blocked": BeTrue()})))
		}

		By("publishing a version that needs a variable")
		publish(needs("v1.0.1", "REGION"))
		update(ctx, w, p, request("for v1.0.1"))
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), blocked("v1.0.1")))
		touch()
		Expect(fetched("v1.0.1")).To(Equal(1))

		By("adding the variable")

		variables.StringData = map[string]string{"REGION": "here"}
		Expect(w.client.Update(ctx, variables)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.1"), upgraded("v1.0.1", v1alpha2.UpgradeSucceeded)))

		By("publishing a version that needs another one, and then needs none")
		publish(needs("v1.0.2", "ZONE"))
		update(ctx, w, p, request("for v1.0.2"))
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.1"), blocked("v1.0.2")))
		server.Replace("owner/"+name, "v1.0.2", files(newTiny(name, "v1.0.2")))
		touch()
		Expect(fetched("v1.0.2")).To(Equal(1))
		update(ctx, w, p, request("what was repaired"))
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.2"), upgraded("v1.0.2", v1alpha2.UpgradeSucceeded)))
	})

	It("leave a provider ready if a check prevents them, and do not change its contract", func(ctx SpecContext) {
		const name = "checked"

		p := install(ctx, name, v1alpha2.UpgradePolicy{Mode: v1alpha2.UpgradeMinor})
		patch := newTiny(name, "v1.0.1")
		patch.components = strings.Replace(patch.components, "--level=", "--region=${REGION}\", \"--level=", 1)
		patch.publish(folder)

		other := newTiny(name, "v1.1.0")
		other.metadata = metadataOf("v1beta2", "v1beta1")
		other.publish(folder)
		w.restart()

		blocked := HaveField("Status.AutomaticUpgrade.Pending", gstruct.PointTo(gstruct.MatchFields(gstruct.IgnoreExtras,
			gstruct.Fields{
				"Version": Equal("v1.0.1"), "Blocked": BeTrue(), "Message": ContainSubstring("no value: REGION"),
			})))
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.0"), blocked))
		Expect(p.Status.DesiredVersion).To(Equal("v1.0.0"))
		Expect(p.Status.MissingVariables).To(BeEmpty())

		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().Version = ">=1.0 <2.0"
			p.GetSpec().Variables = map[string]string{"REGION": "here"}
		})
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.0.1"), upgraded("v1.0.1", v1alpha2.UpgradeSucceeded)))
		Consistently(w.read(ctx, p)).WithTimeout(quietPeriod).Should(beReady("v1.0.1"))

		By("naming what is wrong with the policy")
		update(ctx, w, p, func(p v1alpha2.Provider) {
			p.GetSpec().UpgradePolicy.Window = windowAt(time.Now())
			p.GetSpec().UpgradePolicy.Window.TimeZone = "Europe/Nowhere"
		})
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.InvalidUpgradePolicyReason,
			`spec.upgradePolicy.window.timeZone "Europe/Nowhere" is not in the IANA time zone database`,
			"v1.0.1 runs; a change is not applied: "))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().UpgradePolicy.Window.TimeZone = "Europe/Berlin" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.1"))
	})
})

// windowAt returns a window of an hour that opens once a year at a time, in UTC.
func windowAt(opens time.Time) *v1alpha2.MaintenanceWindow {
	opens = opens.UTC()

	return &v1alpha2.MaintenanceWindow{
		Schedule: fmt.Sprintf("%d %d %d %d *", opens.Minute(), opens.Hour(), opens.Day(), opens.Month()),
		Duration: metav1.Duration{Duration: time.Hour},
	}
}

// upgraded matches a provider whose last automatic upgrade has a result.
func upgraded(version string, result v1alpha2.UpgradeResult) gomegatypes.GomegaMatcher {
	return HaveField("Status.AutomaticUpgrade", gstruct.PointTo(HaveField("Last", gstruct.PointTo(
		gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{"Version": Equal(version), "Result": Equal(result)})))))
}
