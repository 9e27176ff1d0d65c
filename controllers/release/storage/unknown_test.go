package storage

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/capstan-project/capstan/chartgen/helm"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// TestUnknownFieldsStay: what a newer Helm has recorded is still there after the record was written. Only what is known
// changes, and no field is a second spelling of one that is known.
func TestUnknownFieldsStay(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"of the release": {
			`{"new_method":"x","info":{"status":"deployed"},"chart":null}`,
			`{"new_method":"x","info":{"status":"superseded"}}`,
		},
		"of its info and its chart": {
			`{"info":{"status":"deployed","new_number":2},"chart":{"new_time":"now"}}`,
			`{"info":{"status":"superseded","new_number":2},"chart":{"new_time":"now"}}`,
		},
		"with the spelling of known ones": {
			`{"Manifest":"x","manifest":"y","info":{"status":"deployed","ſtatus":"deployed"}}`,
			`{"manifest":"y","info":{"status":"superseded"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			document := map[string]any{"name": "x", "namespace": "ns", "version": 1}
			g.Expect(json.Unmarshal([]byte(c.before), &document)).To(Succeed())
			content, err := json.Marshal(document)
			g.Expect(err).NotTo(HaveOccurred())

			client := fake.NewClientset(record(t, 1, content)).CoreV1().Secrets("ns")
			g.Expect(open(t, client, state.Memory{}).Supersede(2)).To(Succeed())

			secret, err := client.Get(t.Context(), helm.RecordName("x", 1), metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			content, err = unpack(secret.Data["release"])
			g.Expect(err).NotTo(HaveOccurred())

			var got, want map[string]any
			g.Expect(json.Unmarshal(content, &got)).To(Succeed())
			g.Expect(json.Unmarshal([]byte(c.after), &want)).To(Succeed())
			expectFields(g, got, want)
		})
	}
}

// expectFields expects fields of an object in JSON, and no others that are not fields of Helm's types.
func expectFields(g *WithT, got, want map[string]any) {
	for name, value := range want {
		object, ok := value.(map[string]any)
		if !ok {
			g.Expect(got).To(HaveKeyWithValue(name, Equal(value)))
			continue
		}

		nested, _ := got[name].(map[string]any)
		expectFields(g, nested, object)
	}

	g.Expect(got).NotTo(Or(HaveKey("Manifest"), HaveKey("ſtatus")))
}
