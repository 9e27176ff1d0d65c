package storage

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/chartgen/helm"
)

// record returns the Secret of a revision with the content.
func record(t *testing.T, revision int, content []byte) *corev1.Secret {
	t.Helper()

	data, err := pack(content)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns",
			Name:      helm.RecordName("x", revision),
			Labels: map[string]string{
				"owner": "helm", nameLabel: "x", statusLabel: "deployed", numberLabel: fmt.Sprint(revision),
			},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": data},
	}
}

// encode returns the JSON of a release.
func encode(t *testing.T, revision int, change func(*helm.Release)) []byte {
	t.Helper()

	rel := &helm.Release{Name: "x", Namespace: "ns", Version: revision, Info: &helm.Info{Status: "deployed"}}
	if change != nil {
		change(rel)
	}

	data, err := json.Marshal(rel)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return data
}

func list(values int) string { return "a: [" + strings.Repeat("1,", values) + "]\n" }

// TestDecodeHostileRecords: a user who may write Secrets in a namespace cannot make the operator unpack or
// parse more than it can hold.
func TestDecodeHostileRecords(t *testing.T) {
	for name, test := range map[string]struct {
		content func(t *testing.T) []byte
		reason  string
	}{
		"a gzip bomb": {
			func(*testing.T) []byte { return make([]byte, 512<<20) }, "larger than 16 MiB",
		},
		"many values": {
			func(*testing.T) []byte { return []byte(`{"config":{"a":[` + strings.Repeat("1,", 1<<20) + `1]}}`) },
			"more than 300000 values",
		},
		"a manifest with many values": {
			func(t *testing.T) []byte {
				return encode(t, 1, func(r *helm.Release) { r.Manifest = strings.Repeat("-\n", 110000) })
			},
			"its manifest has a document, number 1, that has more than 100000 values",
		},
		"a hook with aliases": {
			func(t *testing.T) []byte {
				return encode(t, 1, func(r *helm.Release) {
					manifest := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 99) + "]"
					r.Hooks = []*helm.Hook{{Manifest: manifest}}
				})
			},
			"its hook has a document",
		},
		"many hooks": {
			func(t *testing.T) []byte {
				return encode(t, 1, func(r *helm.Release) {
					for range 5 {
						r.Hooks = append(r.Hooks, &helm.Hook{Manifest: strings.Repeat("-\n", 70000)})
					}
				})
			},
			"brings the total to more than 300000 values",
		},
		"a release at the limits": {
			func(t *testing.T) []byte {
				return encode(t, 1, func(r *helm.Release) {
					r.Manifest = list(90000) + "---\n" + list(90000) + "---\n" + strings.Repeat("x", 4<<20-10)
				})
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(record(t, 1, test.content(t)), "x", 1)
			if test.reason == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.reason)))
		})
	}
}

func TestDecodeDropsTemplates(t *testing.T) {
	secret := record(t, 1, encode(t, 1, func(r *helm.Release) {
		r.Chart = &helm.Chart{
			Metadata:  &helm.Metadata{Name: "c"},
			Templates: []*helm.File{{Name: "templates/a.yaml", Data: []byte("a")}},
			Values:    map[string]any{"a": "b"},
		}
	}))

	rel, err := Decode(secret, "x", 1)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(rel.Chart.Metadata.Name).To(Equal("c"))
	NewWithT(t).Expect(rel.Chart.Values).To(HaveKey("a"))
	NewWithT(t).Expect(rel.Chart.Templates).To(BeEmpty())
}
