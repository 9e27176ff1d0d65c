package release_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/release"
)

// mixed is a release whose revisions the engine and a helm program create by turns.
type mixed struct {
	helm, namespace string
	engine          *release.Engine
	number          int // of the newest revision
}

// chart returns the chart of a revision. Its object tells the values and the number that it was rendered with.
func (*mixed) chart(number int) *chart.Chart {
	c := chartOf(fmt.Sprintf("1.%d.0", number),
		configMap("config", "{{ .Values.greeting }} {{ .Values.more }} {{ .Release.Revision }}"),
		configMap(fmt.Sprintf("only-%d", number), ""))
	c.Files = append(c.Files,
		chart.File{Name: "values.yaml", Data: []byte("greeting: hello\nmore: default\n")},
		chart.File{Name: "templates/NOTES.txt", Data: []byte("Notes {{ .Release.Revision }}.\n")})

	return c
}

// upgrade creates the next revision, with the greeting of its number. The arguments are those of helm.
func (m *mixed) upgrade(ctx context.Context, byEngine bool, args ...string) {
	GinkgoHelper()

	m.number++

	greeting, c := fmt.Sprintf("greeting-%d", m.number), m.chart(m.number)

	if byEngine {
		mustApply(ctx, m.engine, newSpec(m.namespace, c, map[string]any{"greeting": greeting}))
		return
	}

	m.run(ctx, append([]string{"upgrade", "--install", name, write(c), "--set", "greeting=" + greeting}, args...)...)
}

// rollBack creates the next revision from an earlier one.
func (m *mixed) rollBack(ctx context.Context, byEngine bool, target int) {
	GinkgoHelper()

	m.number++

	if byEngine {
		observed := observe(ctx, m.engine, newSpec(m.namespace, m.chart(m.number), nil))
		options := release.RollbackOptions{Target: confirmed(m.namespace, target), Reason: "a test"}
		Expect(rollback(ctx, m.engine, releaseIn(m.namespace), options, observed)).Error().NotTo(HaveOccurred())

		return
	}

	args := []string{"rollback", name, fmt.Sprint(target)}
	if m.helm == "helm4" {
		args = append(args, "--server-side=false") // its own revisions were applied on the server
	}

	m.run(ctx, args...)
}

// run runs the helm program.
func (m *mixed) run(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return run(ctx, m.helm, append(args, "-n", m.namespace)...)
}

// expect expects the newest revision to be like that of a number, with values, in what all commands print and in the
// cluster.
func (m *mixed) expect(ctx context.Context, like int, greeting, more string) {
	GinkgoHelper()

	var releases, revisions []struct{ Name, Status, Chart string }

	Expect(json.Unmarshal([]byte(m.run(ctx, "list", "-o", "json")), &releases)).To(Succeed())
	Expect(releases).To(HaveExactElements(And(HaveField("Name", name), HaveField("Status", "deployed"),
		HaveField("Chart", fmt.Sprintf("%s-1.%d.0", name, like)))))

	Expect(json.Unmarshal([]byte(m.run(ctx, "history", name, "-o", "json")), &revisions)).To(Succeed())
	Expect(revisions).To(HaveLen(m.number))

	for i, revision := range revisions {
		want := "superseded"
		if i == m.number-1 {
			want = "deployed"
		}

		Expect(revision.Status).To(Equal(want), "revision %d", i+1)
	}

	object, notes := fmt.Sprintf("%s %s %d", greeting, more, like), fmt.Sprintf("Notes %d.", like)

	Expect(m.run(ctx, "status", name)).To(And(ContainSubstring("STATUS: deployed"),
		ContainSubstring("REVISION: %d\n", m.number), ContainSubstring(notes)))
	Expect(m.run(ctx, "get", "all", name)).To(And(ContainSubstring(object), ContainSubstring("name: only-%d", like),
		ContainSubstring(notes)))
	Expect(m.run(ctx, "get", "values", "--all", name, "-o", "json")).
		To(MatchJSON(fmt.Sprintf(`{"greeting": %q, "more": %q}`, greeting, more)))
	Expect(objects(ctx, m.namespace)).To(HaveKeyWithValue("ConfigMap config", object))
	Expect(configMaps(ctx, m.namespace)).To(ConsistOf("config", fmt.Sprintf("only-%d", like)))
}

var _ = Describe("One history of the engine and a helm program", func() {
	DescribeTable("works with all commands", func(ctx SpecContext, helm string, engineBegins bool) {
		m := &mixed{helm: helm, namespace: newNamespace(ctx), engine: newEngine("one")}

		By("installing, and upgrading what the other one has created")

		for number := 1; number <= 4; number++ {
			m.upgrade(ctx, engineBegins == (number%2 == 1))
			m.expect(ctx, number, fmt.Sprintf("greeting-%d", number), "default")
		}

		By("returning to revisions of the other one")
		m.rollBack(ctx, engineBegins, 2)
		m.expect(ctx, 2, "greeting-2", "default")
		m.rollBack(ctx, !engineBegins, 1)
		m.expect(ctx, 1, "greeting-1", "default")

		By("upgrading with the values of the engine's revision")
		m.upgrade(ctx, true)
		m.number++
		m.run(ctx, "upgrade", name, write(m.chart(m.number)), "--reuse-values", "--set", "more=set")
		m.expect(ctx, m.number, "greeting-7", "set")

		By("uninstalling a revision of the engine")
		m.upgrade(ctx, true)

		if engineBegins {
			m.run(ctx, "uninstall", name)
		} else {
			_, err := uninstall(ctx, m.engine, releaseIn(m.namespace), m.number, false)
			Expect(err).NotTo(HaveOccurred())
		}

		Expect(history(ctx, m.namespace)).To(BeEmpty())
		Expect(configMaps(ctx, m.namespace)).To(BeEmpty())
	},
		Entry(nil, "helm", true), Entry(nil, "helm4", false))

	It("returns to what a post-renderer of helm has changed", func(ctx SpecContext) {
		m := &mixed{helm: "helm", namespace: newNamespace(ctx), engine: newEngine("one")}
		m.upgrade(ctx, true)

		renderer := filepath.Join(GinkgoT().TempDir(), "renderer")
		Expect(os.WriteFile(renderer, []byte("#!/bin/sh\nsed s/greeting-2/changed/\n"), 0o700)).To(Succeed())

		m.upgrade(ctx, false, "--post-renderer", renderer)
		m.upgrade(ctx, true)
		m.rollBack(ctx, true, 2)
		Expect(objects(ctx, m.namespace)).To(HaveKeyWithValue("ConfigMap config", "changed default 2"))
		Expect(m.run(ctx, "get", "manifest", name)).To(ContainSubstring("changed default 2"))
	})
})
