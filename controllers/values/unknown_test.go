package values_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/values"
)

func TestUnknown(t *testing.T) {
	used := []string{"AWS_B64ENCODED_CREDENTIALS", "EXP_MACHINE_POOL", "K8S_CP_LABEL"}

	for name, c := range map[string]struct {
		unknown bool
		hint    string
	}{
		"EXP_MACHINE_POOL":           {},
		"images":                     {},
		"EXP_MACHINEPOOL":            {true, "; did you mean EXP_MACHINE_POOL?"},
		"AWS_B64_ENCODED_CREDENTIAL": {true, "; did you mean AWS_B64ENCODED_CREDENTIALS?"},
		"NO_SUCH":                    {true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := values.Unknown(map[string]string{name: "x"}, "v1.0.0", used)
			if !c.unknown {
				NewWithT(t).Expect(found).To(BeEmpty())
				return
			}

			NewWithT(t).Expect(found).To(Equal([]string{
				"spec.variables." + name + " has no effect: v1.0.0 has no such variable" + c.hint,
			}))
		})
	}
}
