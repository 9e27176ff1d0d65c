package clusters

import (
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestGuardLimitsMemory(t *testing.T) {
	const tooMuch = "documents take more than 1 MiB of memory"

	for name, c := range map[string]struct{ sent, want string }{
		"an object":                          {sent: `{"a": [1, 2, {"b": "c"}]}`},
		"objects in a list":                  {"[" + strings.Repeat("{},", 10000) + "{}]", tooMuch},
		"lists in an object":                 {`{"a": ` + strings.Repeat("[", 10000), tooMuch},
		"values in a list":                   {"[" + strings.Repeat("1,", 100000) + "1]", tooMuch},
		"brackets in a text":                 {sent: `{"a": "\"` + strings.Repeat("[{", 10000) + `"}`},
		"objects after a text that looks so": {`["\\",` + strings.Repeat("{},", 10000) + "{}]", tooMuch},
		"events, one after the other":        {sent: strings.Repeat(`{"type": "ADDED"}`+"\n", 10000)},
		"an event among others": {
			"{}\n{\"a\": [" + strings.Repeat("{},", 10000) + "{}]}\n{}\n", tooMuch,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client, _, url := guardedClient(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, c.sent)
			})

			response, err := client.Get(url + "/apis?watch=true")
			g.Expect(err).NotTo(HaveOccurred())

			read, err := io.ReadAll(response.Body)
			g.Expect(response.Body.Close()).To(Succeed())

			if c.want != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.want)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(read)).To(Equal(c.sent))
		})
	}
}

func TestGuardLimitsMemoryOfOpenResponses(t *testing.T) {
	g := NewWithT(t)
	half := "[" + strings.Repeat("{},", 1500)
	client, guard, url := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, half)
		_ = http.NewResponseController(w).Flush()

		<-r.Context().Done()
	})

	read := func() (*http.Response, error) {
		response, err := client.Get(url)
		g.Expect(err).NotTo(HaveOccurred())

		_, err = io.ReadFull(response.Body, make([]byte, len(half)))

		return response, err
	}

	first, err := read()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Body.Close()).To(Succeed())
	g.Expect(guard.decoded.bytes).To(BeZero(), "it has been read")

	second, err := read()
	g.Expect(err).NotTo(HaveOccurred())

	third, err := read()
	g.Expect(err).To(MatchError(ContainSubstring("documents take more than 1 MiB of memory")))

	g.Expect(second.Body.Close()).To(Succeed())
	g.Expect(third.Body.Close()).To(Succeed())
}

func TestGuardAcceptsOnlyJSON(t *testing.T) {
	for name, c := range map[string]struct{ asked, want string }{
		"no format":      {"", "application/json"},
		"another format": {"application/vnd.kubernetes.protobuf, */*", "application/json"},
		"metadata": {
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
				"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
			"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var accepted string

			client, _, url := guardedClient(t, func(w http.ResponseWriter, r *http.Request) {
				accepted = r.Header.Get("Accept")

				w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			})

			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			g.Expect(err).NotTo(HaveOccurred())
			request.Header.Set("Accept", c.asked)

			response, err := client.Do(request)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
			g.Expect(accepted).To(Equal(c.want))
			g.Expect(response.Header.Get("Content-Type")).To(Equal("application/json"), "it is decoded as JSON")
			g.Expect(request.Header.Get("Accept")).To(Equal(c.asked), "the caller's request stays as it is")
		})
	}
}
