package main

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/capstan-project/capstan/test/bed"
)

// serverCPU returns a function that returns the processor time, in seconds, that the API server has taken since.
func serverCPU(ctx context.Context, b *bed.Bed) (func() (float64, error), error) {
	const metric = "process_cpu_seconds_total"

	before, err := serverMetric(ctx, b, metric)

	return func() (float64, error) {
		now, err := serverMetric(ctx, b, metric)

		return now - before, err
	}, err
}

// serverMetric reads one of the API server's own metrics, one without labels.
func serverMetric(ctx context.Context, b *bed.Bed, metric string) (value float64, err error) {
	c, err := kubernetes.NewForConfig(b.Config())
	if err != nil {
		return 0, err
	}

	metrics, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}

	for line := range strings.Lines(string(metrics)) {
		if n, _ := fmt.Sscanf(line, metric+" %g", &value); n == 1 {
			return value, nil
		}
	}

	return 0, fmt.Errorf("the API server has no metric %s", metric)
}
