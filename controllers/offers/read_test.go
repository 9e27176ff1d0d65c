package offers

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestNothingIsReadWithoutAPolicy(t *testing.T) {
	seen, err := new(Tracker).Read(&v1alpha2.InfrastructureProvider{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(seen).To(BeZero())
}
