package storage

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestCheckRecords(t *testing.T) {
	release := types.NamespacedName{Namespace: "ns", Name: "x"}
	records := func(numbers ...string) []metav1.PartialObjectMetadata {
		var all []metav1.PartialObjectMetadata

		for _, number := range numbers {
			all = append(all, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "sh.helm.release.v1.x.v" + number, Labels: map[string]string{"version": number},
			}})
		}

		return all
	}

	most := make([]string, MaxRecords)
	for i := range most {
		most[i] = strconv.Itoa(i + 1)
	}

	for name, c := range map[string]struct {
		numbers []string
		message string
	}{
		"no record":        {},
		"a long history":   {numbers: most},
		"too many records": {append(most, "201"), "more than 200 revisions"},
		"odd numbers":      {numbers: []string{"9223372036854775807", "99999999999999999999", "first"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := CheckRecords(release, records(c.numbers...))

			if c.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
			g.Expect(err).To(HaveField("Reason", v1alpha2.InstallFailedReason))
		})
	}

	_, isRevision := RevisionOf(&records("9223372036854775807")[0].ObjectMeta)
	NewWithT(t).Expect(isRevision).To(BeFalse(), "no next revision could be numbered")
}
