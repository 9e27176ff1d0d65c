package ui

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func frame() Frame {
	return Frame{Base: "/token/", Cluster: "https://127.0.0.1:6443", Now: now}
}

func condition(conditionType string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: conditionType, Status: is, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}
}

// provider returns a provider with a state, the reason and the message of its condition Ready.
func provider(kind v1alpha2.ProviderType, name string, state view.State, reason, message string) view.Provider {
	v := view.Provider{
		Kind: string(kind), Namespace: name + "-system", Name: name, Label: kind.Label(name), Ready: "False",
		Wanted: "v1.0.0", Version: "v1.0.0", Contract: "v1beta2", Created: metav1.NewTime(now.Add(-48 * time.Hour)),
		Verdict:    view.Verdict{State: state, Text: "v1.0.0 is " + string(state), Cause: message},
		Release:    &v1alpha2.ReleaseStatus{Name: kind.Label(name), Revision: 3, Status: "deployed"},
		Conditions: []metav1.Condition{condition("Ready", "False", reason, message)},
	}
	if state == view.Ready {
		v.Ready, v.Verdict.Cause = "True", ""
		v.Conditions[0].Status = metav1.ConditionTrue
	}

	return v
}

// providers returns one provider in each state.
func providers() []view.Provider {
	aws := provider(v1alpha2.InfrastructureProviderType, "aws", view.Failing,
		"InstallFailed", "the API server refused Service aws")
	aws.Wanted = "v1.1.0"
	aws.Conditions = append(aws.Conditions,
		condition("Drifted", "True", "DriftDetected", "Deployment aws: /spec/replicas"))

	core := provider(v1alpha2.CoreProviderType, "cluster-api", view.Ready,
		"Healthy", "v1.0.0 is healthy")
	core.Upgrades = []v1alpha2.AvailableUpgrade{
		{Version: "v1.0.1", Contract: "v1beta2"}, {Version: "v1.2.0", Contract: "v1beta2"},
	}

	kubeadm := provider(v1alpha2.BootstrapProviderType, "kubeadm", view.Waiting,
		"WaitingForCoreProviderReady", "waiting for core")

	helm := provider(v1alpha2.AddonProviderType, "helm", view.Stopped,
		"Healthy", "v1.0.0 is healthy")
	helm.Suspended = true
	helm.Wanted = "~1.0"
	helm.Chosen = "v1.0.2"
	helm.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{
		Pending: &v1alpha2.PendingUpgrade{Version: "v1.0.2", Message: "waits for the window"},
		Last: &v1alpha2.AutomaticUpgrade{
			Version: "v1.0.1", Result: v1alpha2.UpgradeFailed, Message: "no " + strings.Repeat("x", 400),
		},
	}

	return []view.Provider{core, kubeadm, aws, helm}
}

// parsed returns a page as HTML and as a parsed document.
func parsed(t *testing.T, page any) (string, *html.Node) {
	t.Helper()

	data, err := render(page)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	document, err := html.Parse(strings.NewReader(string(data)))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return string(data), document
}

// texts returns the texts of all elements with a name.
func texts(document *html.Node, element string) []string {
	var found []string

	for n := range document.Descendants() {
		if n.Type == html.ElementNode && n.Data == element {
			found = append(found, text(n))
		}
	}

	return found
}

func text(n *html.Node) string {
	var out strings.Builder

	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data + " ")
		}
	}

	return strings.Join(strings.Fields(out.String()), " ")
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}

	return ""
}

func TestOverview(t *testing.T) {
	g := NewWithT(t)
	out, document := parsed(t, newOverview(frame(), providers()))

	g.Expect(texts(document, "tr")).To(HaveExactElements(
		"Provider Version Wanted Revision Age Status",
		"infrastructure-aws v1.0.0 v1.1.0 3 2d v1.0.0 is failing : the API server refused Service aws",
		"bootstrap-kubeadm v1.0.0 v1.0.0 3 2d v1.0.0 is waiting : waiting for core",
		"addon-helm v1.0.0 v1.0.2 3 2d v1.0.0 is stopped : v1.0.0 is healthy",
		"cluster-api v1.0.0 v1.0.0 3 2d v1.0.0 is ready",
	))
	g.Expect(texts(document, "span")).To(ContainElement("1 failing, 1 waiting, 1 stopped, 1 ready"))
	g.Expect(out).To(ContainSubstring(`href="/token/providers/InfrastructureProvider/aws-system/aws"`))

	out, _ = parsed(t, newOverview(frame(), nil))
	g.Expect(out).To(ContainSubstring("There are no providers."))
}

// detailed returns a provider with everything that a page shows.
func detailed() view.Provider {
	v := providers()[2]
	v.Chart = &v1alpha2.ChartStatus{
		Name: "infrastructure-aws", Version: "1.1.0", Digest: "sha256:0123456789abcdef", Source: "https://example.com/aws",
	}
	v.Objects = []view.Object{
		{Kind: "ClusterRole", Name: "aws", Status: status.CurrentStatus, Message: "Resource is current"},
		{Kind: "Service", Namespace: "aws-system", Name: "webhook", Status: status.NotFoundStatus, Message: "does not exist"},
	}
	v.Upgrades = []v1alpha2.AvailableUpgrade{{Version: "v1.2.0", Contract: "v1beta2"}}
	v.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{
		Pending: &v1alpha2.PendingUpgrade{Version: "v1.2.0", Message: "a variable is missing", Blocked: true},
		Last:    &v1alpha2.AutomaticUpgrade{Version: "v1.1.0", Result: v1alpha2.UpgradeFailed},
	}
	v.Details = &view.Details{
		Images:    []string{"registry.example.com/aws:v1.1.0"},
		Trust:     []string{"Cosign signature, trusted by Secret keys"},
		Variables: []view.Variable{{Name: "PASSWORD", From: "Secret aws-system/aws"}, {Name: "REGION"}},
		CRDs: []view.CRD{{
			Name: "awsclusters.example.com", Served: []string{"v1beta1", "v1beta2"}, Storage: "v1beta2",
			Stored: []string{"v1beta1", "v1beta2"},
		}},
		Events: []view.Event{{
			Time: metav1.NewTime(now.Add(-time.Minute)), Type: "Warning", Reason: "InstallFailed", Message: "refused", Count: 3,
		}},
		Unknown: []string{"CRDs: forbidden"},
	}

	return v
}

func history() []view.Revision {
	return []view.Revision{
		{
			Revision: 1, Status: "superseded", Version: "v1.0.0", By: "capstan", Reason: "installation",
			Healthy: true, Updated: now.Add(-48 * time.Hour), Digest: "sha256:0123456789abcdef", Description: "Install complete",
		},
		{
			Revision: 2, Status: "failed", Version: "v1.1.0", By: "helm",
			Description: `Upgrade failed: invalid value: "s3cr3t"`,
		},
		{Revision: 3, Status: "deployed", Version: "v1.0.0", By: "helm", Description: "Rollback to 1"},
	}
}

func TestProvider(t *testing.T) {
	g := NewWithT(t)
	out, document := parsed(t, newProvider(frame(), detailed(), history(), ""))

	main := texts(document, "main")[0]
	for _, want := range []string{
		"infrastructure-aws failing capstan status infrastructure-aws -n aws-system Copy " +
			"v1.0.0 is failing : the API server refused Service aws",
		"Resource InfrastructureProvider aws-system/aws", "Version v1.0.0 wants v1.1.0", "Contract v1beta2",
		"automatic upgrade to v1.2.0 is blocked: a variable is missing automatic upgrade to v1.1.0: Failed",
		"Not known CRDs: forbidden",
		"Objects that are not healthy Service aws-system/webhook NotFound does not exist",
		"History capstan history infrastructure-aws -n aws-system",
		"Revision 3 v1.0.0 deployed Compare by helm Rollback to 1",
		"Revision 2 v1.1.0 failed Compare by helm · was not healthy not shown, because another " +
			"program wrote it",
		"Revision 1 v1.0.0 superseded 2d ago by capstan: installation · was healthy Install complete",
		"Ready=False InstallFailed for 60m the API server refused Service aws Drifted=True",
		"v1.2.0 contract v1beta2 capstan diff --version v1.2.0 infrastructure-aws -n aws-system",
		"Objects 1 of 2 healthy", "Service aws-system/webhook NotFound ClusterRole aws Current",
		"Source https://example.com/aws", "Required Cosign signature, trusted by Secret keys",
		"registry.example.com/aws:v1.1.0",
		"awsclusters.example.com v1beta1, v1beta2 v1beta2 v1beta1, v1beta2",
		"PASSWORD Secret aws-system/aws REGION missing", "InstallFailed 60s ago 3 times refused",
	} {
		g.Expect(main).To(ContainSubstring(want))
	}

	g.Expect(out).NotTo(ContainSubstring("s3cr3t"))
}

// TestHistoryNamesACauseOnce: neither a rollback nor its verdict repeats why the revision before failed.
func TestHistoryNamesACauseOnce(t *testing.T) {
	g := NewWithT(t)
	v := detailed()
	v.Verdict = view.Verdict{Text: "v1.0.0 runs; v1.1.0 failed twice", Cause: "no node for a; to try again, run a command"}

	descriptions := []string{
		"Install complete", "no node for b", "Rollback to 1: no node for b", "no node for a", "Rollback to 3: no node for a",
		"Rollback to 1: spec.release.rollbackTo",
	}

	var revisions []view.Revision
	for i, description := range descriptions {
		revisions = append(revisions, view.Revision{Revision: i + 1, By: "capstan", Description: description})
	}

	page := newProvider(frame(), v, revisions, "")

	var shown []string
	for _, r := range revisions {
		shown = append(shown, page.Description(r))
	}

	g.Expect(shown).To(Equal([]string{
		"Install complete", "no node for b", "", "", "", "Rollback to 1: spec.release.rollbackTo",
	}))
}

// TestEmptyProvider checks the page of a resource that the operator has not seen yet.
func TestEmptyProvider(t *testing.T) {
	v := view.Provider{Kind: "AddonProvider", Namespace: "a", Name: "b", Label: "addon-b", Ready: "Unknown"}
	_, document := parsed(t, newProvider(frame(), v, nil, "Helm's records cannot be read"))
	main := texts(document, "main")[0]

	g := NewWithT(t)
	for _, want := range []string{
		"Version not installed", "The resource has no conditions yet.", "There is no release.", "No objects are known.",
		"Helm's records cannot be read",
	} {
		g.Expect(main).To(ContainSubstring(want))
	}
}

func TestCommandsAreQuoted(t *testing.T) {
	g := NewWithT(t)
	v := provider(v1alpha2.AddonProviderType, "it's; rm -rf ~", view.Ready, "Healthy", "")
	_, document := parsed(t, newProvider(frame(), v, nil, ""))
	g.Expect(texts(document, "code")[0]).To(Equal(
		`capstan status 'addon-it'\''s; rm -rf ~' -n 'it'\''s; rm -rf ~-system'`))
}

// TestStructure checks what assistive technologies and the content policy need in all pages.
func TestStructure(t *testing.T) {
	for name, content := range map[string]any{
		"overview": newOverview(frame(), providers()),
		"provider": newProvider(frame(), detailed(), history(), "note"),
		"compare":  newCompare(frame(), detailed(), view.Sides{From: 1, To: 2}, history(), comparison()),
		"problem":  &Problem{Frame: frame(), Title: "Not found", Message: "There is no provider x."},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, document := parsed(t, content)
			ids, commands := map[string]bool{}, map[string]bool{}

			for n := range document.Descendants() {
				if n.Type != html.ElementNode {
					continue
				}

				for _, a := range n.Attr {
					g.Expect(a.Key).NotTo(Or(HavePrefix("on"), Equal("style")), "inline code or style in %s", n.Data)

					if a.Key == "id" {
						g.Expect(ids).NotTo(HaveKey(a.Val))
						ids[a.Val] = true
					}

					if a.Key == "data-copy" {
						g.Expect(commands).NotTo(HaveKey(a.Val), "a page has each command once")
						commands[a.Val] = true
					}

					if a.Key == "href" || a.Key == "src" || a.Key == "action" {
						g.Expect(a.Val).To(Or(HavePrefix("/token/"), HavePrefix("#")))
					}
				}

				g.Expect(n.Data).NotTo(Equal("style"))

				if n.Data == "script" {
					g.Expect(text(n)).To(BeEmpty())
				}
			}

			g.Expect(texts(document, "main")).To(HaveLen(1))
			g.Expect(texts(document, "h1")).To(HaveLen(1))
			g.Expect(texts(document, "title")[0]).NotTo(BeEmpty())
			g.Expect(attribute(first(document, "html"), "lang")).To(Equal("en"))
		})
	}
}

func first(document *html.Node, element string) *html.Node {
	for n := range document.Descendants() {
		if n.Type == html.ElementNode && n.Data == element {
			return n
		}
	}

	return nil
}

// TestScript checks that the script uses nothing that stores data or runs text as code.
func TestScript(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("static", "live.js"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	forbidden := regexp.MustCompile(
		`localStorage|sessionStorage|indexedDB|document\.cookie|innerHTML|outerHTML|eval\(|Function\(|document\.write`)
	NewWithT(t).Expect(forbidden.FindAllString(string(script), -1)).To(BeEmpty())
}
