package sandbox

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// TestRenderAgain: the same request has the same result for a while, whatever callers do with it.
func TestRenderAgain(t *testing.T) {
	g := NewWithT(t)

	render := func(request Request) string {
		result, err := Render(t.Context(), "ns", request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.Chart.Metadata.Annotations).To(BeEmpty())

		result.Chart.Metadata.Annotations = map[string]string{"changed": "by the caller"}

		return result.Files["x/templates/a.yaml"]
	}

	request := template(`a: {{ randAlphaNum 20 }}{{ .Values.b }}`)
	request.Values = map[string]any{"b": "c"}
	first := render(request)
	g.Expect(render(request)).To(Equal(first))

	request.Values = map[string]any{"b": "d"}
	g.Expect(render(request)).NotTo(HavePrefix(first[:len(first)-1]))

	request.Values = map[string]any{"b": "c"}
	request.Release.Revision++
	g.Expect(render(request)).NotTo(Equal(first))
}

func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)

		var r results

		g.Expect(r.get(requestID{1})).To(BeNil())

		r.add(requestID{1}, make([]byte, maxKept/4+1))
		g.Expect(r.get(requestID{1})).To(BeNil(), "too large")

		for i := range byte(5) {
			r.add(requestID{i}, make([]byte, maxKept/4))
			time.Sleep(time.Second) // of the bubble's clock
		}

		g.Expect(r.get(requestID{0})).To(BeNil(), "the oldest")
		g.Expect(r.get(requestID{1})).NotTo(BeNil())
		g.Expect(r.size).To(Equal(maxKept))

		r.add(requestID{1}, []byte("newer"))
		time.Sleep(keptFor - time.Second)
		g.Expect(r.get(requestID{2})).To(BeNil(), "its time is over")
		g.Expect(string(r.get(requestID{1}))).To(Equal("newer"))

		time.Sleep(2 * time.Second)
		g.Expect(r.kept).To(BeEmpty())
		g.Expect(r.size).To(BeZero())
	})
}
