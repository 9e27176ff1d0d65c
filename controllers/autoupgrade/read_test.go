package autoupgrade

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestNothingIsReadWithoutAPolicy(t *testing.T) {
	seen, err := Read(&v1alpha2.InfrastructureProvider{}, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(seen).To(BeZero())
}
