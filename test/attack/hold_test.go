package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// remoteBombs are API servers of the tenant that make the operator hold what they send, by many kubeconfigs.
var remoteBombs = []bomb{
	{tried: "60 kubeconfigs for a server that sends 11 MiB and waits before the end", lasting: true, answers: 4,
		throw: func(a *arena) []v1alpha2.Provider { return a.held(a.counted(holding(11 << 20))) }},
	{tried: "60 kubeconfigs for a server that answers to who it is, and sends 11 MiB and waits for everything else",
		lasting: true, answers: 4,
		throw: func(a *arena) []v1alpha2.Provider { return a.held(identified(a.counted(holding(11 << 20)))) }},
	{tried: "60 kubeconfigs for a server whose lists have as many objects as the operator accepts",
		lasting: true, answers: 100,
		throw: func(a *arena) []v1alpha2.Provider {
			list := `{"kind":"List","apiVersion":"v1","items":[{}` + strings.Repeat(",{}", 100_000) + `]}`

			return a.held(identified(a.counted(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, list)
			})))
		}},
}

// counted answers with a handler, and counts these answers.
func (a *arena) counted(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer a.answers.Add(1)

		handler(w, r)
	}
}

// held returns 60 providers with kubeconfigs of their own for a server.
func (a *arena) held(handler http.Handler) []v1alpha2.Provider {
	const count = 60

	kubeconfig := a.kubeconfig(a.server(handler), nil)
	room := a.room()
	providers := make([]v1alpha2.Provider, 0, count)

	for i := range count {
		s := small{room, fmt.Sprintf("%s-%d", a.name, i), "v1.0.0", ""}
		secret := kubeconfig.DeepCopy()
		secret.Namespace, secret.Name = room, s.name

		p := s.resource()
		p.Namespace = room
		p.Spec.KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
			LocalSecretReference: v1alpha2.LocalSecretReference{Name: s.name}, Key: "value",
		}}

		a.create(secret, s.configMap(), p)
		providers = append(providers, p)
	}

	return providers
}

// holding answers every request with a text, and sends its end only after half a minute.
func holding(size int) http.HandlerFunc {
	text := []byte(`{"kind":"List","apiVersion":"v1","text":"` + strings.Repeat("x", size))

	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(text)
		_ = http.NewResponseController(w).Flush()

		select {
		case <-time.After(28 * time.Second):
		case <-r.Context().Done():
		}

		_, _ = io.WriteString(w, `"}`)
	}
}

// identified answers as an API server to who it is and which kinds it serves, and otherwise with a handler.
func identified(other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		answer := map[string]any{"apiVersion": "v1"}

		switch r.URL.Path {
		case "/api/v1/namespaces/kube-system":
			answer["kind"] = "Namespace"
			answer["metadata"] = map[string]any{"name": "kube-system", "uid": r.Host}
		case "/version":
			answer["major"], answer["minor"], answer["gitVersion"] = "1", "36", "v1.36.0"
		default:
			other.ServeHTTP(w, r)
			return
		}

		_ = json.NewEncoder(w).Encode(answer)
	})
}
