package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// attacks are texts that become code or markup where a page does not escape them.
var attacks = []string{
	`<script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`,
	`' onmouseover='alert(1)`,
	`javascript:alert(1)`,
	`</title></textarea></style><svg/onload=alert(1)>`,
	`{{.Base}}{{template "head"}}`,
	`<!--<script>`,
	"\x00<scr\x00ipt>\u202e",
	`<base href=//evil.example.com>`,
	`<meta http-equiv=refresh content="0;url=//evil.example.com">`,
	"\xff\xfe<b>",
	`]]><iframe srcdoc=x>`,
}

// FuzzRender checks that no text of a provider, or of its objects and messages, adds an element or an
// attribute to a page.
func FuzzRender(f *testing.F) {
	for _, attack := range attacks {
		f.Add(attack)
	}

	var plain [][]string
	for _, content := range pages("harmless") {
		plain = append(plain, markup(f, content))
	}

	f.Fuzz(func(t *testing.T, text string) {
		if strings.TrimSpace(text) == "" {
			t.Skip("empty texts are left out of pages")
		}

		for i, content := range pages(text) {
			if got := markup(t, content); !slices.Equal(got, plain[i]) {
				t.Errorf("the markup of page %d differs: %s", i, firstDifference(plain[i], got))
			}
		}
	})
}

// pages returns pages that have a text in every place.
func pages(text string) []any {
	v := detailed()
	for _, field := range []*string{
		&v.Namespace, &v.Name, &v.Label, &v.Ready, &v.Wanted, &v.Chosen, &v.Contract, &v.Chart.Name, &v.Chart.Source,
		&v.Chart.Digest, &v.Chart.Reference, &v.Release.Name, (*string)(&v.Release.Status), &v.Upgrades[0].Version,
		&v.Upgrades[0].Contract, &v.Objects[0].Kind, &v.Objects[0].Name, &v.Objects[1].Message,
		&v.Details.Images[0], &v.Details.Trust[0], &v.Details.Variables[0].Name, &v.Details.Variables[0].From,
		&v.Details.CRDs[0].Name, &v.Details.CRDs[0].Storage, &v.Details.CRDs[0].Stored[0], &v.Details.CRDs[0].Served[0],
		&v.AutomaticUpgrade.Pending.Version, &v.AutomaticUpgrade.Pending.Message,
		&v.AutomaticUpgrade.Last.Version, &v.AutomaticUpgrade.Last.Message,
		&v.Verdict.Text, &v.Verdict.Cause,
		&v.Details.Events[0].Reason, &v.Details.Events[0].Message, &v.Details.Unknown[0],
	} {
		*field = text
	}

	// What a page shows depends on whether these are equal.
	v.Version = text + "1"
	v.Conditions = []metav1.Condition{
		condition(v1alpha2.ReadyCondition, "False", text, text), condition(text+"2", "True", text, text),
	}

	revision := view.Revision{
		Revision: 2, Status: v1alpha2.RevisionStatus(text), Version: text, By: "capstan", Reason: text, Digest: text,
		Description: text + "3", Updated: now,
	}
	shown := frame()
	shown.Cluster = text

	line := strings.Join(strings.Fields("x "+text), " ") // more lines would be more elements
	comparison := view.Comparison{Withheld: text + ".", Changes: []objectdiff.Change{
		{Object: text, Kind: objectdiff.Kind(text), Diff: "@@" + line + "\n+" + line + "\n-" + line + "\n" + line},
	}}

	return []any{
		newOverview(shown, []view.Provider{v}),
		newProvider(shown, v, []view.Revision{revision, revision}, text),
		newCompare(shown, v, view.Sides{From: 2}, []view.Revision{revision}, comparison),
	}
}

// markup returns the elements of a page with the names of their attributes, in order. Links must stay on the page's
// server.
func markup(t testing.TB, content any) []string {
	t.Helper()

	out, err := render(content)
	if err != nil {
		t.Fatal(err)
	}

	document, err := html.Parse(strings.NewReader(string(out)))
	if err != nil {
		t.Fatal(err)
	}

	var found []string

	for n := range document.Descendants() {
		if n.Type == html.CommentNode {
			found = append(found, "comment")
		}

		if n.Type != html.ElementNode {
			continue
		}

		names := make([]string, 0, len(n.Attr))
		for _, a := range n.Attr {
			names = append(names, a.Key)

			if isLink := a.Key == "href" || a.Key == "src" || a.Key == "action"; isLink && !isLocal(a.Val) {
				t.Errorf("a link leaves the page: %q", a.Val)
			}
		}

		found = append(found, fmt.Sprintf("%s %v", n.Data, names))
	}

	for _, r := range string(out) {
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("the page contains the control character %U", r)
		}
	}

	return found
}

// isLocal reports whether a link stays below the base of the page.
func isLocal(link string) bool {
	return strings.HasPrefix(link, "#") || strings.HasPrefix(link, "/token/")
}

func firstDifference(want, got []string) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("element %d is %q, not %q", i, got[i], want[i])
		}
	}

	return fmt.Sprintf("%d elements, not %d", len(got), len(want))
}
