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

	limits := Limits{
		Timeout: 200 * time.Millisecond, ProbeTimeout: 200 * time.Millisecond,
		MinProbe: 20 * time.Millisecond, MaxResponse: 1 << 20, MaxList: 2 << 20,
		MaxDecoded: 1 << 20, Pause: 500 * time.Millisecond,
	}.withDefaults()
	reach := &reachability{address: server.URL, limits: limits, running: t.Context(), changed: func() {}}
	g := &guard{limits: limits, reach: reach, running: t.Context(), sizes: &sizes{}, decoded: &decoded{}}
	client := &http.Client{Transport: g.wrap(http.DefaultTransport)}

	return client, g, server.URL
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

// sends returns a handler that sends some bytes.
func sends(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", n))
	}
}

// get reads a whole response.
func get(client *http.Client, address string) error {
	response, err := client.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	_, err = io.Copy(io.Discard, response.Body)

	return err
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
			client, _, address := guardedClient(t, test.handler)
			NewWithT(t).Expect(get(client, address+test.path)).To(MatchError(HaveSuffix("no response within 200ms")))
		})
	}

	t.Run("but not a watch that was answered", func(t *testing.T) {
		g := NewWithT(t)
		client, _, address := guardedClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			time.Sleep(400 * time.Millisecond) // longer than a request may take

			_, _ = io.WriteString(w, "event")
		})

		response, err := client.Get(address + "/api?watch=true&timeoutSeconds=300")
		g.Expect(err).NotTo(HaveOccurred())

		defer response.Body.Close()

		g.Expect(io.ReadAll(response.Body)).To(BeEquivalentTo("event"))
	})
}

func TestGuardLimitsSize(t *testing.T) {
	for name, test := range map[string]struct {
		size  int
		paths []string
		want  string
	}{
		"a response within the limit": {1 << 20, []string{"/api", "/api"}, ""},
		"a response beyond it":        {1<<20 + 1, []string{"/api"}, ": a response exceeded the limit of 1 MiB"},
		"a watch within its limit":    {2 << 20, []string{"/api?watch=1"}, ""},
		"a watch beyond it":           {2<<20 + 1, []string{"/api?watch=1"}, ": a watch exceeded the limit of 2 MiB"},
		"pages within the limit": {
			1 << 20, []string{"/api?limit=9", "/api?limit=9&continue=a", "/api?limit=9", "/api?limit=9&continue=b"}, "",
		},
		"pages beyond it": {
			1 << 20, []string{"/api?limit=9", "/api?limit=9&continue=a", "/api?limit=9&continue=b"},
			": the pages of a list exceeded the limit of 2 MiB",
		},
		"pages of two lists": {
			1 << 20, []string{"/a?limit=9", "/b?limit=9", "/a?continue=a&limit=9", "/b?continue=a&limit=9"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, address := guardedClient(t, sends(test.size))

			var err error
			for _, path := range test.paths {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				err = get(client, address+path)
			}

			if test.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
			}
		})
	}
}

func TestGuardLimitsResponsesAtTheSameTime(t *testing.T) {
	g := NewWithT(t)
	client, _, address := guardedClient(t, sends(1<<20))

	// read reads a response, and returns what closes it.
	read := func() (end func() error) {
		response, err := client.Get(address)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = response.Body.Close() })
		g.Expect(io.ReadAll(response.Body)).To(HaveLen(1 << 20))

		return response.Body.Close
	}

	end := read()
	read()
	g.Expect(end()).To(Succeed())
	g.Expect(end()).To(Succeed(), "it counts once")
	g.Expect(get(client, address)).To(Succeed())

	read()
	g.Expect(get(client, address)).To(MatchError(ContainSubstring(
		": responses at the same time exceeded the limit of 2 MiB")))
}

func TestGuardPausesAfterTooMuch(t *testing.T) {
	g := NewWithT(t)
	requests := make(chan string, 100)
	client, guarded, address := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path

		switch r.URL.Path {
		case "/large":
			sends(1<<20+1)(w, r)
		case "/events":
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "event")
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}
	})

	changed := make(chan struct{}, 10)
	guarded.reach.changed = func() { changed <- struct{}{} }
	guarded.reach.setProbe(newProbe(client, address))

	watch := make(chan error)

	go func() { watch <- get(client, address+"/events?watch=true") }()

	g.Eventually(requests).Should(Receive(Equal("/events")))

	begin := time.Now()
	err := get(client, address+"/large")

	var unreachable *UnreachableError
	g.Expect(errors.As(err, &unreachable)).To(BeTrue())
	g.Expect(unreachable).To(MatchError("the API server " + address + " of spec.kubeConfig is not asked again " +
		"for 500ms: a response exceeded the limit of 1 MiB; reduce the objects in that cluster or correct the kubeconfig"))
	g.Eventually(changed).Should(Receive(), "to report it")
	g.Eventually(watch).Should(Receive(MatchError(ContainSubstring("a response exceeded the limit"))))

	// Nothing is sent meanwhile, not even a probe.
	g.Expect(requests).To(Receive(Equal("/large")))
	g.Consistently(func() error { return get(client, address+"/small") }, "300ms").Should(
		MatchError(ContainSubstring(unreachable.Error())))
	g.Expect(requests).To(BeEmpty())

	g.Eventually(changed).Should(Receive(), "it may be asked again")
	g.Expect(time.Since(begin)).To(BeNumerically(">=", 500*time.Millisecond))
	g.Expect(requests).To(Receive(Equal("/version")))
	g.Expect(get(client, address+"/small")).To(Succeed())
}

func TestGuardFollowsNoRedirect(t *testing.T) {
	g := NewWithT(t)
	followed := false
	client, _, address := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
		followed = followed || r.URL.Path == "/elsewhere"
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})

	g.Expect(get(client, address)).To(MatchError(ContainSubstring("the API server redirects requests")))
	g.Expect(followed).To(BeFalse())
}

func TestGuardEndsWithTheConnection(t *testing.T) {
	g := NewWithT(t)
	client, guarded, address := guardedClient(t, silent)
	running, stop := context.WithCancel(t.Context())
	guarded.running = running
	guarded.limits.Timeout = time.Hour
	client.Transport = guarded.wrap(http.DefaultTransport)

	stop()
	g.Expect(get(client, address)).To(MatchError(context.Canceled))
}

func TestReachability(t *testing.T) {
	g := NewWithT(t)
	answers := make(chan struct{})
	client, guarded, address := guardedClient(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-answers:
		case <-r.Context().Done():
		}
	})

	changed := make(chan struct{}, 10)
	guarded.reach.changed = func() { changed <- struct{}{} }
	guarded.reach.setProbe(newProbe(client, address))

	g.Expect(get(client, address)).To(MatchError(HaveSuffix("no response within 200ms")))

	// A probe confirms it.
	g.Eventually(changed).Should(Receive())

	refusal := guarded.reach.refusal()
	g.Expect(refusal).To(BeAssignableToTypeOf(&UnreachableError{}))
	g.Expect(refusal).To(MatchError(ContainSubstring(address)))

	begin := time.Now()

	g.Expect(get(client, address)).To(MatchError(ContainSubstring(refusal.Error())))
	g.Expect(time.Since(begin)).To(BeNumerically("<", 100*time.Millisecond), "nothing was sent")

	close(answers)
	g.Eventually(changed).Should(Receive())
	g.Expect(get(client, address)).To(Succeed())
	g.Consistently(changed, "100ms").ShouldNot(Receive())
}

func TestReachabilityOfOneLostRequest(t *testing.T) {
	g := NewWithT(t)
	requests := make(chan string, 10)
	client, guarded, address := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path

		if r.URL.Path != "/version" {
			silent(w, r)
		}
	})

	guarded.reach.changed = func() { t.Error("the server answers") }
	guarded.reach.setProbe(newProbe(client, address))

	g.Expect(get(client, address+"/api")).NotTo(Succeed())
	g.Eventually(requests).Should(Receive(Equal("/version")))
	g.Consistently(guarded.reach.refusal, "100ms").Should(Succeed())
}
