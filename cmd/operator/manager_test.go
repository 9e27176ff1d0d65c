package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/client-go/rest"
)

func TestLimitRequests(t *testing.T) {
	for name, c := range map[string]struct {
		qps     float32
		fair    bool
		limited bool
	}{
		"the API server does it":        {qps: 50, fair: true},
		"the API server does not do it": {qps: 50, limited: true},
		"no limit is wanted":            {qps: -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.fair {
					w.Header().Set(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID, "uid")
				}
			}))
			t.Cleanup(server.Close)

			config := &rest.Config{Host: server.URL}
			(&requests{qps: c.qps, burst: 300}).limit(config)

			g.Expect(config.QPS).To(BeNumerically("<", 0), "no client has a limit of its own")
			g.Expect(config.RateLimiter != nil).To(Equal(c.limited))

			if c.limited {
				g.Expect(config.RateLimiter.QPS()).To(Equal(c.qps))
			}
		})
	}
}
