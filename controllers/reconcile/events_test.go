package reconcile

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestWarn(t *testing.T) {
	g := NewWithT(t)
	recorder := events.NewFakeRecorder(2)
	r := &Reconciler{Dependencies: &Dependencies{Events: recorder}}

	r.warn(&v1alpha2.CoreProvider{}, "Ignored", "Reconcile")
	g.Expect(recorder.Events).To(BeEmpty(), "nothing to warn of")

	r.warn(&v1alpha2.CoreProvider{}, "Ignored", "Reconcile", "one is ignored", "two is ignored")
	g.Expect(recorder.Events).To(HaveLen(1))
	g.Expect(<-recorder.Events).To(Equal("Warning Ignored one is ignored; two is ignored"))

	r.warn(&v1alpha2.CoreProvider{}, "Ignored", "Reconcile", strings.Repeat("x", 2000))
	g.Expect(len(<-recorder.Events)).To(BeNumerically("<=", 1024+len("Warning Ignored ")))
}
