package foreign

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestSearches(t *testing.T) {
	g := NewWithT(t)
	searches := &Searches{}
	now := time.Now()

	g.Expect(searches.IsRecent("a", now)).To(BeFalse())

	searches.Add("a", now)
	g.Expect(searches.IsRecent("a", now.Add(searchTrust/2))).To(BeTrue())
	g.Expect(searches.IsRecent("b", now)).To(BeFalse(), "another resource")
	g.Expect(searches.IsRecent("a", now.Add(searchTrust))).To(BeFalse(), "it may have been installed since")

	searches.Add("b", now.Add(searchTrust))
	g.Expect(searches.times).To(HaveLen(1), "old ones are forgotten")
}
