package watch

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestScopeIncludes(t *testing.T) {
	for name, c := range map[string]struct {
		namespaces []string
		selector   string
		included   bool
	}{
		"everything":                      {nil, "", true},
		"its namespace":                   {[]string{"a", "capa"}, "", true},
		"another namespace":               {[]string{"a"}, "", false},
		"its label":                       {nil, "team in (x, y)", true},
		"another label":                   {nil, "team=y", false},
		"its namespace but another label": {[]string{"capa"}, "!team", false},
		"its label in another namespace":  {[]string{"a"}, "team=x", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scope, err := NewScope(c.namespaces, c.selector)
			g.Expect(err).NotTo(HaveOccurred())

			p := &v1alpha2.InfrastructureProvider{
				ObjectMeta: metav1.ObjectMeta{Namespace: "capa", Name: "aws", Labels: map[string]string{"team": "x"}},
			}
			g.Expect(scope.Includes(p)).To(Equal(c.included))
		})
	}
}

func TestNewScopeRefusesInvalidInput(t *testing.T) {
	g := NewWithT(t)
	_, err := NewScope([]string{"a", "b c"}, "")
	g.Expect(err).To(MatchError(ContainSubstring(`invalid namespace "b c"`)))
	_, err = NewScope(nil, "team=x=y")
	g.Expect(err).To(MatchError(ContainSubstring("e.g. team=a")))
}

func TestScopeConcernsWhatLeavesIt(t *testing.T) {
	g := NewWithT(t)
	scope, err := NewScope(nil, "team=x")
	g.Expect(err).NotTo(HaveOccurred())

	inside := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "x"}}}
	outside := &v1alpha2.InfrastructureProvider{}
	concerns := scope.Concerns()

	g.Expect(concerns.Update(event.UpdateEvent{ObjectOld: inside, ObjectNew: outside})).To(BeTrue())
	g.Expect(concerns.Update(event.UpdateEvent{ObjectOld: outside, ObjectNew: inside})).To(BeTrue())
	g.Expect(concerns.Update(event.UpdateEvent{ObjectOld: outside, ObjectNew: outside})).To(BeFalse())
	g.Expect(concerns.Create(event.CreateEvent{Object: outside})).To(BeFalse())
	g.Expect(concerns.Delete(event.DeleteEvent{Object: inside})).To(BeTrue())
}

func TestStatusLost(t *testing.T) {
	for name, c := range map[string]struct {
		before, now int64
		lost        bool
	}{
		"new":     {0, 0, false},
		"written": {0, 1, false},
		"kept":    {1, 2, false},
		"lost":    {2, 0, true},
		"reset":   {2, -1, true},
		"begun":   {-1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			observed := func(generation int64) *v1alpha2.CoreProvider {
				p := &v1alpha2.CoreProvider{}
				p.GetStatus().ObservedGeneration = generation

				return p
			}
			update := event.UpdateEvent{ObjectOld: observed(c.before), ObjectNew: observed(c.now)}
			NewWithT(t).Expect(StatusLost.Update(update)).To(Equal(c.lost))
		})
	}
}
