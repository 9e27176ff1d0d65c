package clusters

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// guardedClient returns a client whose requests are guarded, with small limits.
func guardedClient(t *testing.T, handler http.HandlerFunc) (*http.Client, *guard, string) {
	t.Helper()

	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler(w, r.WithContext(contextUntil(r.Context(), ended)))
	}))

	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })

	g := &guard{
		address: server.URL, limits: Limits{Timeout: 200 * time.Millisecond}.withDefaults(),
		namespace: "tenant", memory: newResponseMemory(), running: t.Context(),
		failed: func() {},
	}

	return &http.Client{Transport: g.wrap(&http.Transport{})}, g, server.URL
}

// contextUntil returns a context that also ends with a channel.
func contextUntil(ctx context.Context, ended <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(ctx)

	go func() {
		<-ended
		cancel()
	}()

	return ctx
}

func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// answers returns a handler that answers with a text.
func answers(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// get reads a whole response.
func get(client *http.Client, address string) (string, error) {
	response, err := client.Get(address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)

	return string(body), err
}

func TestGuardLimitsTime(t *testing.T) {
	beginsAndStops := func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		silent(w, r)
	}

	for name, test := range map[string]struct {
		handler http.HandlerFunc
		path    string
	}{
		"a request that is not answered":        {silent, "/api"},
		"a watch that is not answered":          {silent, "/api?watch=true"},
		"a response that never ends":            {beginsAndStops, "/api"},
		"a list that asks for a watch of false": {beginsAndStops, "/api?watch=false"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client, guarded, address := guardedClient(t, test.handler)
			failed := false
			guarded.failed = func() { failed = true }
			client.Transport = guarded.wrap(&http.Transport{})

			var unreachable *UnreachableError

			_, err := get(client, address+test.path)
			g.Expect(errors.As(err, &unreachable)).To(BeTrue())
			g.Expect(unreachable.Reason).To(Equal("no response within 200ms"))
			g.Expect(failed).To(BeTrue(), "the server is asked whether it answers at all")
		})
	}

	t.Run("but not a watch that was answered", func(t *testing.T) {
		client, _, address := guardedClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			time.Sleep(400 * time.Millisecond) // longer than a request may take

			_, _ = io.WriteString(w, "event")
		})

		NewWithT(t).Expect(get(client, address+"/api?watch=true&timeoutSeconds=300")).To(Equal("event"))
	})
}

func TestGuardLimitsSize(t *testing.T) {
	text := func(size int) string { return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}` }
	list := func(count int) string { return `{"items":[{}` + strings.Repeat(",{}", count-1) + `]}` }

	for name, test := range map[string]struct {
		body string
		path string
		want string
	}{
		"a small response":          {text(1 << 10), "/", ""},
		"one of medium size":        {text(1 << 20), "/", ""},
		"a large one":               {text(12 << 20), "/", ""},
		"one that is too large":     {text(12<<20 + 1), "/", "a response takes more than 12 MiB, or 48 MiB of memory"},
		"many small objects":        {list(100_000), "/", ""},
		"too many":                  {list(200_000), "/", "a response takes more than 12 MiB, or 48 MiB of memory"},
		"a watch":                   {text(1 << 20), "/?watch=1", ""},
		"a watch that sends more":   {text(1<<20 + 1), "/?watch=1", "a watch takes more than 1 MiB, or 8 MiB of memory"},
		"a watch of many fields":    {list(30_000), "/?watch=1", "a watch takes more than 1 MiB, or 8 MiB of memory"},
		"an error that is too long": {text(12<<20 + 1), "/error", "a response takes more than 12 MiB, or 48 MiB of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client, guarded, address := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/error" {
					w.WriteHeader(http.StatusInternalServerError)
				}

				_, _ = io.WriteString(w, test.body)
			})
			guarded.limits.Timeout = time.Minute
			client.Transport = guarded.wrap(&http.Transport{})

			body, err := get(client, address+test.path)
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(body == test.body).To(BeTrue())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			}
		})
	}
}

func TestGuardLimitsHeaders(t *testing.T) {
	client, _, address := guardedClient(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", maxHeader))
		_, _ = io.WriteString(w, "{}")
	})

	_, err := get(client, address)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("server response headers exceeded")))
}

func TestReconcilesAreDividedAmongNamespaces(t *testing.T) {
	g := NewWithT(t)
	pool := &Pool{}
	enter := func(namespace string) (leave func(), err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()

		_, leave, err = pool.Enter(ctx, namespace, &Target{Remote: true})

		return leave, err
	}

	leave := func() {}

	for range 4 {
		var err error

		leave, err = enter("tenant")
		g.Expect(err).NotTo(HaveOccurred())
	}

	_, err := enter("tenant")
	g.Expect(err).To(MatchError(errNoMemory), "its kubeconfigs have their part")

	leaveOther, err := enter("other")
	g.Expect(err).NotTo(HaveOccurred(), "those of another namespace do not wait")
	leaveOther()

	leave()

	_, err = enter("tenant")
	g.Expect(err).NotTo(HaveOccurred())

	_, _, err = pool.Enter(t.Context(), "tenant", &Target{})
	g.Expect(err).NotTo(HaveOccurred(), "the local cluster needs none")
}

// Servers of one tenant share its memory: those of another do not wait for them.
func TestLargeResponsesAreDividedAmongNamespaces(t *testing.T) {
	g := NewWithT(t)
	large := `{"a":"` + strings.Repeat("x", largeBody/2)
	ended := make(chan struct{})
	_, guarded, address := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, large)
		w.(http.Flusher).Flush()

		if r.URL.Path == "/held" {
			<-ended
		}

		_, _ = io.WriteString(w, `"}`)
	})
	guarded.limits.Timeout = time.Minute

	read := func(namespace, path string, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()

		of := *guarded
		of.namespace = namespace
		client := &http.Client{Transport: of.wrap(&http.Transport{})}

		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())

		response, err := client.Do(request)
		if err != nil {
			return err
		}

		return response.Body.Close()
	}

	held := make(chan error)

	go func() { held <- read("tenant", "/held", time.Minute) }()

	g.Eventually(func() error { return read("tenant", "/", 200*time.Millisecond) }).ShouldNot(Succeed(), "it has its part")
	g.Expect(read("other", "/", time.Minute)).To(Succeed())

	close(ended)
	g.Eventually(held).Should(Receive(BeNil()))
	g.Expect(read("tenant", "/", time.Minute)).To(Succeed())
}

func TestGuardLimitsWhatAReconcileReads(t *testing.T) {
	g := NewWithT(t)
	client, guarded, address := guardedClient(t, answers(http.StatusOK, `{"a":"`+strings.Repeat("x", 10<<20)+`"}`))
	guarded.limits.Timeout = time.Minute
	client.Transport = guarded.wrap(&http.Transport{})

	ctx := context.WithValue(t.Context(), readingKey{}, newReading())

	var failure error

	for range 10 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(failure).NotTo(HaveOccurred())

		response, err := client.Do(request)
		if failure = err; err == nil {
			g.Expect(response.Body.Close()).To(Succeed())
		}
	}

	g.Expect(failure).To(MatchError(ContainSubstring("it sends more than 96 MiB at once")))
}

func TestGuardShowsNoTextOfOtherServers(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"an error as text": {
			http.StatusInternalServerError, "secret of an inner server",
			"the server answers with 500 and no reason, as no API server does; check the server of the kubeconfig",
		},
		"an error as other JSON": {
			http.StatusForbidden, `{"message":"secret of an inner server"}`,
			"the server answers with 403 and no reason, as no API server does; check the server of the kubeconfig",
		},
		"an API server's error": {
			http.StatusForbidden, `{"kind":"Status","message":"not\n\u001b[31mallowed"}`, "not",
		},
		"a page":       {http.StatusOK, "<html>secret of an inner server", "its responses are not those of an API server"},
		"other JSON":   {http.StatusOK, `{"secret":"of an inner server"}`, "its responses are not those of an API server"},
		"another type": {http.StatusOK, `["secret of an inner server"]`, "its responses are not those of an API server"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client, _, address := guardedClient(t, answers(test.status, test.body))

			body, err := get(client, address+"/api/v1/namespaces")
			if err != nil {
				body = err.Error()
			}

			g.Expect(body).To(ContainSubstring(test.want))
			g.Expect(body).NotTo(ContainSubstring("inner server"))
			g.Expect(body).NotTo(ContainSubstring("\x1b"))
			g.Expect(body).NotTo(ContainSubstring(`\u001b`))
		})
	}
}

func TestGuardFollowsNoRedirect(t *testing.T) {
	g := NewWithT(t)
	followed := false
	client, _, address := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
		followed = followed || r.URL.Path == "/elsewhere"
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})

	_, err := get(client, address)
	g.Expect(err).To(MatchError(ContainSubstring("it redirects requests, which is not followed")))
	g.Expect(followed).To(BeFalse())
}

func TestGuardEndsWithTheConnection(t *testing.T) {
	client, guarded, address := guardedClient(t, silent)
	running, stop := context.WithCancel(t.Context())
	guarded.running = running
	guarded.limits.Timeout = time.Hour
	client.Transport = guarded.wrap(&http.Transport{})

	stop()

	_, err := get(client, address)
	NewWithT(t).Expect(err).To(MatchError(context.Canceled))
}
