package callers

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/usage"
	"github.com/capstan-project/capstan/ui"
)

const group = ".infrastructure.cluster.x-k8s.io"

// inUse returns a usage by three kinds, of which one could not be read, besides a kind without objects.
func inUse(context.Context, v1alpha2.Provider) (facts.Usage, error) {
	return facts.Usage{
		Kinds: []usage.Kind{
			{Name: "awsclusters" + group, Count: 1, Examples: []string{"default/a"}, Clusters: []string{"default/public"}},
			{Name: "awsmachines" + group, Count: 2, Examples: []string{"secret/b"}, Clusters: []string{"secret/hidden"}},
			{Name: "awssubnets" + group, Problem: "conversion webhook of the operator"},
		},
		Searched: []string{"awsclusters" + group, "awsempties" + group, "awsmachines" + group, "awssubnets" + group},
	}, nil
}

// TestVisibleUsage checks what a caller sees of the objects that keep a provider from being removed, on its page and on
// the page of dependencies, and that what is left out is counted whether there is something or not.
func TestVisibleUsage(t *testing.T) {
	const list = "jane list infrastructureproviders "

	for name, c := range map[string]struct {
		rules             []string
		has, not          []string
		onPage, notOnPage []string
	}{
		"all": {
			[]string{"jane"},
			[]string{"awsclusters", "awsmachines", "default/public", "secret/hidden", "conversion webhook"},
			[]string{"You may not list the objects"},
			[]string{"3 objects, of Clusters default/public, secret/hidden"}, nil,
		},
		"everything, by a wildcard": {
			[]string{list, "jane list * "}, []string{"secret/hidden"}, []string{"You may not list"},
			[]string{"secret/hidden"}, nil,
		},
		"nothing": {
			[]string{list},
			[]string{"You may not list the objects of 4 kinds, so there may be more."},
			[]string{"awsclusters", "awsmachines", "awsempties", "default/", "secret/", "Nothing:", "conversion webhook"},
			nil, []string{"default/", "secret/", "In use"},
		},
		"one kind": {
			[]string{list, "jane list awsclusters "},
			[]string{"awsclusters", "default/public", "You may not list the objects of 3 kinds"},
			[]string{"awsmachines", "secret/", "conversion webhook"},
			[]string{"1 object, of Cluster default/public"}, []string{"secret/"},
		},
		"one kind without objects": {
			[]string{list, "jane list awsempties "},
			[]string{"You may not list the objects of 3 kinds"}, []string{"default/", "Nothing:"},
			nil, []string{"default/", "secret/", "In use"},
		},
		"a kind in one namespace": {
			[]string{list, "jane list awsclusters default", "jane get awsmachines "},
			[]string{"You may not list the objects of 4 kinds"}, []string{"default/", "secret/"},
			nil, []string{"default/", "secret/", "In use"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cluster := newCluster(t)
			cluster.may(c.rules...)
			s := cluster.serve(t, cluster.access(t), func(o *ui.Options) {
				o.Usages = ui.NewUsages(t.Context(), inUse, o.Feed)
			})

			page := func(path string) func() string {
				return func() string {
					code, body := s.get(t, path, header("jane-token"))
					g.Expect(code).To(Equal(http.StatusOK))

					return body
				}
			}

			provider := page("/providers/InfrastructureProvider/capa-system/aws")
			g.Eventually(provider).ShouldNot(ContainSubstring("being looked up"))
			g.Eventually(page("/dependencies")).ShouldNot(ContainSubstring("being looked up"))
			expect(g, provider(), c.has, c.not)
			expect(g, page("/dependencies")(), c.onPage, c.notOnPage)
		})
	}
}

func expect(g *WithT, body string, has, not []string) {
	for _, text := range has {
		g.Expect(body).To(ContainSubstring(text))
	}

	for _, text := range not {
		g.Expect(body).NotTo(ContainSubstring(text))
	}
}

// TestDependenciesOfCaller checks that the page neither has providers that a caller may not list, nor shows
// whether they exist.
func TestDependenciesOfCaller(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	cluster.may("jane list infrastructureproviders capa-system")

	code, body := cluster.serve(t, cluster.access(t)).get(t, "/dependencies", header("jane-token"))
	g.Expect(code).To(Equal(http.StatusOK))
	g.Expect(body).To(And(ContainSubstring("infrastructure-aws"), Not(ContainSubstring("azure"))))
	g.Expect(body).To(ContainSubstring(`<span class="bad">cluster-api</span> (not found)`), "which it may not list")
}

// TestManyKinds checks that a page asks about a limited number of kinds, first those that have objects, and shows
// nothing of the others.
func TestManyKinds(t *testing.T) {
	g := NewWithT(t)
	cluster := newCluster(t)
	cluster.may("jane list infrastructureproviders ")

	many := facts.Usage{}
	for i := range 500 {
		many.Searched = append(many.Searched, fmt.Sprintf("k%03d.example.com", i))
		cluster.may(fmt.Sprintf("jane list k%03d ", i))
	}

	many.Kinds = []usage.Kind{{Name: "k499.example.com", Count: 1}}

	access := cluster.access(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())

	request.Header = header("jane-token")
	view, err := access.View(request)
	g.Expect(err).NotTo(HaveOccurred())

	before := cluster.requests()
	visible, err := view.Visible(t.Context(), []facts.Usage{many})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.requests() - before).To(Equal(1 + maxKinds))
	g.Expect(visible).To(HaveExactElements(And(
		HaveField("Kinds", HaveLen(1)), HaveField("Searched", HaveLen(maxKinds)), HaveField("Unseen", 500-maxKinds))))

	cluster.change(func() { cluster.broken = true })

	many.Searched = []string{"other.example.com"}
	_, err = view.Visible(t.Context(), []facts.Usage{many})
	g.Expect(err).To(HaveOccurred(), "nothing is shown while the API server cannot be asked")
}
