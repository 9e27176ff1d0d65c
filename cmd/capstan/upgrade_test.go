package main

import (
	"testing"

	. "github.com/onsi/gomega"

	providerplan "github.com/capstan-project/capstan/controllers/plan"
)

func TestPlansAreDrawn(t *testing.T) {
	offers := func(versionsAndContracts ...string) []providerplan.Version {
		var all []providerplan.Version
		for i := 0; i < len(versionsAndContracts); i += 2 {
			all = append(all, providerplan.Version{Version: versionsAndContracts[i], Contract: versionsAndContracts[i+1]})
		}

		return all
	}
	core := installed{
		"cluster-api",
		"v1.9.10",
		"v1beta1",
		offers("v1.14.0-rc.0", "v1beta2", "v1.13.5", "v1beta2", "v1.9.11", "v1beta1", "v1.9.10", "v1beta1"),
	}
	kubeadm := installed{"bootstrap-kubeadm", "v1.9.10", "v1beta1", offers("v1.13.5", "v1beta2", "v1.9.11", "v1beta1")}
	aws := installed{"infrastructure-aws", "v2.11.1", "v1beta1", offers("v2.11.1", "v1beta1", "v2.10.3", "v1beta1")}

	ancient := installed{"infrastructure-ancient", "v0.1.0", "v1alpha4", nil}
	for file, all := range map[string][]installed{
		"plan.txt":         {core, kubeadm, aws},
		"plan-blocked.txt": {core, ancient},
		"plan-current.txt": {{"cluster-api", "v1.13.5", "v1beta2", offers("v1.13.5", "v1beta2")}, aws},
		"plan-no-core.txt": {aws},
	} {
		t.Run(file, func(t *testing.T) {
			golden(t, file, drawn(&screen{}, func(s *screen) {
				for _, p := range makePlans(all) {
					p.print(s)
				}
			}))
		})
	}

	golden(t, "plan.json", drawn(&screen{format: "json"}, func(s *screen) {
		done, err := s.data(makePlans([]installed{core, kubeadm, aws}))
		NewWithT(t).Expect(done, err).To(BeTrue())
	}))
	NewWithT(t).Expect(makePlans(nil)).To(BeEmpty())
}
