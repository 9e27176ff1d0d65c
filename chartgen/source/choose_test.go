package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/test/fakesource"
)

var errUnmet = errors.New("core v1beta1 does not work with it")

// only returns a condition that versions with a contract meet, and no others.
func only(accepted string) func(context.Context) (Condition, error) {
	return func(context.Context) (Condition, error) {
		return func(contract string) error {
			if contract == accepted {
				return nil
			}

			return errUnmet
		}, nil
	}
}

// TestResolveByContract checks that of several versions the newest is chosen that meets the condition,
// wherever the versions are published.
func TestResolveByContract(t *testing.T) {
	const contracts = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
		"releaseSeries: [{major: 1, minor: 8, contract: v1beta1}, " +
		"{major: 1, minor: 9, contract: v1beta1}, {major: 1, minor: 10, contract: v1beta2}]"

	published := []string{"v1.8.0", "v1.9.0", "v1.9.1", "v1.10.0", "v1.10.1"}
	files := func(metadata string) map[string][]byte {
		return map[string][]byte{"metadata.yaml": []byte(metadata), "infrastructure-components.yaml": []byte("c")}
	}

	server := &fakesource.Server{}
	folder := filepath.Join(t.TempDir(), "infrastructure-tiny")

	for _, version := range published {
		server.Publish("owner/tiny", version, files(contracts))
		server.Publish("owner/plain", version, files(""))
		NewWithT(t).Expect(os.MkdirAll(filepath.Join(folder, version), 0o755)).To(Succeed())

		for name, data := range files(contracts) {
			NewWithT(t).Expect(os.WriteFile(filepath.Join(folder, version, name), data, 0o600)).To(Succeed())
		}
	}

	server.Publish("owner/tiny", "v1.9.2", nil) // a tag without a release
	NewWithT(t).Expect(server.Start()).To(Succeed())
	t.Cleanup(func() { _ = server.Stop() })

	website := func(project string) *Source {
		w, err := NewWebsite(server.URL()+project+"/releases", infrastructure, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		return w
	}
	directory, err := NewDirectory(folder)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for place, open := range map[string]func() *Source{
		"a website": func() *Source { return website("/owner/tiny") },
		"a folder":  func() *Source { return directory },
	} {
		for name, test := range map[string]struct {
			request Request
			want    string
			message string
		}{
			"any contract":                     {Request{}, "v1.10.1", ""},
			"the newest meets the condition":   {Request{Choice: only("v1beta2")}, "v1.10.1", ""},
			"an older one meets the condition": {Request{Choice: only("v1beta1")}, "v1.9.1", ""},
			"a range":                          {Request{Version: ">=1.8", Choice: only("v1beta1")}, "v1.9.1", ""},
			"an exact version":                 {Request{Version: "v1.10.0", Choice: only("v1beta1")}, "v1.10.0", ""},
			"the pinned version":               {Request{Pinned: "v1.10.0", Choice: only("v1beta1")}, "v1.10.0", ""},
			"no version": {
				Request{Choice: only("v1beta3")}, "",
				"no available version can be used; the newest is v1.10.1: " + errUnmet.Error(),
			},
			"no version of a range": {
				Request{Version: "~1.10", Choice: only("v1beta1")},
				"", "no version in the range ~1.10 can be used; the newest is v1.10.1: " + errUnmet.Error(),
			},
		} {
			t.Run(place+", "+name, func(t *testing.T) {
				g := NewWithT(t)

				got, err := open().Resolve(t.Context(), test.request)
				if test.message != "" {
					g.Expect(err).To(MatchError(errUnmet))
					g.Expect(err).To(MatchError(test.message))

					return
				}

				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(got.Name).To(Equal(test.want))
			})
		}
	}

	t.Run("what has no contracts is not held back", func(t *testing.T) {
		g := NewWithT(t)
		got, err := website("/owner/plain").Resolve(t.Context(), Request{Choice: only("v1beta1")})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Name).To(Equal("v1.10.1"))
	})
	t.Run("nothing is chosen yet", func(t *testing.T) {
		g := NewWithT(t)
		wait := func(context.Context) (Condition, error) { return nil, errUnmet }

		_, err := website("/owner/tiny").Resolve(t.Context(), Request{Choice: wait})
		g.Expect(err).To(Equal(errUnmet))
		_, err = website("/owner/tiny").Resolve(t.Context(), Request{Version: "v1.10.0", Choice: wait})
		g.Expect(err).NotTo(HaveOccurred(), "there is no choice")
	})
}
