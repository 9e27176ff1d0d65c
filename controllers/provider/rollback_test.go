package provider

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

func TestRefusesRollback(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":                        {nil, false},
		"a contract":                     {problem.Await(v1alpha2.CAPIVersionIncompatibilityReason, "no"), true},
		"CRDs that are missing":          {crds.Missing("", ""), true},
		"a CRD of another provider":      {crds.Owned("", "", ""), true},
		"a record that cannot be read":   {&storage.CorruptError{}, true},
		"CRDs that cannot be compared":   {unchecked("", ""), true},
		"a store that does not answer":   {plan.StoreFailed(errors.New("timeout")), false},
		"a release that another changes": {storage.ErrChanged, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.err
			if err != nil {
				err = fmt.Errorf("context: %w", err)
			}

			NewWithT(t).Expect(refusesRollback(err)).To(Equal(test.want))
		})
	}
}

// TestUncheckedTarget checks that the provider neither returns to a revision that could not be checked, nor rules it
// out.
func TestUncheckedTarget(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)

	config := &rest.Config{Host: server.URL}

	kinds, err := apply.NewKinds(config, http.DefaultClient)
	g.Expect(err).NotTo(HaveOccurred())

	connection, err := apply.Connect(config, http.DefaultClient, kinds)
	g.Expect(err).NotTo(HaveOccurred())

	target := revision(1, v1alpha2.RevisionSuperseded, former)
	r := newTestRun(revision(2, v1alpha2.RevisionFailed, wanted), target)
	r.target = &clusters.Target{Releases: release.NewEngine(connection, release.Options{})}

	_, err = r.checkReturn(t.Context(), target)
	result := resultOf(err)
	g.Expect(result.Outcome).To(Equal(Retrying))
	g.Expect(result.text()).To(HavePrefix("read Secret capa-system/sh.helm.release.v1.infrastructure-aws.v1"))
	g.Expect(r.policy.Refused).To(BeEmpty())
}
