package attack

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// recordBombs are records of Helm with extreme numbers, and many of them.
var recordBombs = []bomb{
	recorded("A record of revision 2^63-1", highest(math.MaxInt64)),
	recorded("400 small records", func(s *site) []*corev1.Secret {
		var all []*corev1.Secret
		for n := range 400 {
			all = append(all, s.record(n+2, "superseded", note(s.name, s.home.namespace, "x")))
		}

		return all
	}),
	recorded("20 records of 1 MB", func(s *site) []*corev1.Secret {
		var all []*corev1.Secret
		for n := range 20 {
			all = append(all, s.large(n+2))
		}

		return all
	}),
}

// recorded returns a bomb that plants records for a provider that is installed.
func recorded(what string, records func(*site) []*corev1.Secret) bomb {
	return bomb{tried: what, tolerable: true, throw: func(a *arena) []v1alpha2.Provider {
		s := a.site()
		s.neverOverflown()
		s.installHealthy()

		for _, record := range records(s) {
			s.provide(record)
		}

		s.settle()

		return []v1alpha2.Provider{s.home.resource()}
	}}
}

// highest returns records of revisions.
func highest(numbers ...int) func(*site) []*corev1.Secret {
	return func(s *site) []*corev1.Secret {
		var all []*corev1.Secret
		for _, n := range numbers {
			all = append(all, s.record(n, "deployed", note(s.name, s.home.namespace, "x")))
		}

		return all
	}
}

// neverOverflown declares that the operator must not write a revision with a negative number, nor try to.
func (s *site) neverOverflown() {
	s.never("a revision has a negative number", func(ctx context.Context) bool {
		list := &corev1.SecretList{}
		s.Expect(s.admin.List(ctx, list, client.InNamespace(s.home.namespace))).To(Succeed())

		log, err := os.ReadFile(s.log)
		s.Expect(err).NotTo(HaveOccurred())

		return bytes.Contains(log, []byte("infrastructure-"+s.name+".v-")) ||
			slices.ContainsFunc(list.Items, func(record corev1.Secret) bool { return strings.Contains(record.Name, ".v-") })
	})
}

// large returns a record that is as large as a Secret may be and hardly compressible.
func (s *site) large(revision int) *corev1.Secret {
	s.Helper()

	noise := make([]byte, 750<<10)
	_, err := rand.Read(noise)
	s.Expect(err).NotTo(HaveOccurred())

	text, err := json.Marshal(map[string]any{
		"name": "infrastructure-" + s.name, "namespace": s.home.namespace, "version": revision,
		"manifest": note(s.name, s.home.namespace, "x"), "info": map[string]any{"status": "superseded"},
		"config": map[string]any{strconv.Itoa(revision): noise},
	})
	s.Expect(err).NotTo(HaveOccurred())

	return s.home.recordOf(revision, "superseded", text)
}
