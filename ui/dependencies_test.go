package ui_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/usage"
	"github.com/capstan-project/capstan/ui"
)

// mapped returns core and providers that need others, of which one fails with a message, in two clusters.
func mapped(message string) []v1alpha2.Provider {
	core := &v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: "cluster-api"}}
	core.Status = ready("core").(*v1alpha2.InfrastructureProvider).Status

	addon := &v1alpha2.AddonProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "caaph-system", Name: "helm"}}
	addon.Status = core.Status

	waiting := failing("gcp", "waiting for the providers in spec.dependsOn to become ready: ipam-in-cluster")
	waiting.GetSpec().DependsOn = []string{"addon-helm", "ipam-in-cluster"}
	waiting.GetStatus().Conditions[0].Reason = v1alpha2.WaitingForDependenciesReason

	edge := ready("docker")
	edge.GetSpec().KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
		LocalSecretReference: v1alpha2.LocalSecretReference{Name: "edge"}, Key: "value",
	}}

	return []v1alpha2.Provider{core, failing("aws", message), ready("azure"), waiting, addon, edge}
}

// withUsages makes the objects of aws known, of which one has a name.
func withUsages(name string) func(*ui.Options) {
	read := func(_ context.Context, p v1alpha2.Provider) (facts.Usage, error) {
		if p.GetName() != "aws" {
			return facts.Usage{}, nil
		}

		return facts.Usage{Kinds: []usage.Kind{{
			Name: "awsclusters.infrastructure.cluster.x-k8s.io", Count: 2,
			Examples: []string{"default/" + name}, Clusters: []string{"default/production"},
		}}}, nil
	}

	return func(o *ui.Options) { o.Usages = ui.NewUsages(context.Background(), read, o.Feed) }
}

// TestUsages checks that objects are looked up in the background, and again only when that is old.
func TestUsages(t *testing.T) {
	g := NewWithT(t)

	var (
		searches atomic.Int32
		problem  atomic.Bool
	)

	answer := make(chan struct{})
	read := func(ctx context.Context, _ v1alpha2.Provider) (facts.Usage, error) {
		searches.Add(1)

		select {
		case <-answer:
		case <-ctx.Done():
		}

		if problem.Load() {
			return facts.Usage{}, errors.New("no answer")
		}

		return facts.Usage{Kinds: []usage.Kind{{Name: "awsclusters.example.com", Count: 7}}}, nil
	}

	s := newSite(t, func(o *ui.Options) { o.Usages = ui.NewUsages(t.Context(), read, o.Feed) })
	events := s.follow(t)

	_, body := get(t, s.url+"dependencies", nil)
	g.Expect(body).To(ContainSubstring("The objects of 1 provider are being looked up."))

	_, body = get(t, s.url+awsPage, nil)
	g.Expect(body).To(ContainSubstring("The objects are being looked up."))
	g.Eventually(searches.Load).Should(BeEquivalentTo(1))

	close(answer)
	g.Eventually(events, 5*time.Second).Should(Receive(Equal("changed: InfrastructureProvider/capa-system/aws")))

	for path, want := range map[string]string{
		"dependencies": "In use: 7 objects of its kinds", awsPage: "<td>awsclusters.example.com</td><td>7</td>",
	} {
		_, body = get(t, s.url+path, nil)
		g.Expect(body).To(ContainSubstring(want))
	}

	g.Expect(searches.Load()).To(BeEquivalentTo(1))

	// Providers in other clusters are not searched.
	s.cluster.set(mapped("")[5])

	_, body = get(t, s.url+"dependencies", nil)
	g.Expect(body).To(And(
		ContainSubstring("Cluster of the kubeconfig in Secret capa-system/edge/value"), ContainSubstring("None are known.")))

	// A search that fails is reported.
	problem.Store(true)
	s.cluster.set(aws("other"))
	get(t, s.url+"dependencies", nil)
	g.Eventually(func() string {
		_, body := get(t, s.url+"dependencies", nil)
		return body
	}, 5*time.Second).Should(ContainSubstring("it is not known whether it is in use: no answer"))
}

// TestManySearches checks that few providers are searched at the same time, and that the pages are not notified of
// each.
func TestManySearches(t *testing.T) {
	g := NewWithT(t)

	var running, most, searches atomic.Int32

	read := func(context.Context, v1alpha2.Provider) (facts.Usage, error) {
		defer running.Add(-1)

		for now := running.Add(1); ; {
			if known := most.Load(); now <= known || most.CompareAndSwap(known, now) {
				break
			}
		}

		searches.Add(1)

		return facts.Usage{}, nil
	}

	s := newSite(t, func(o *ui.Options) { o.Usages = ui.NewUsages(t.Context(), read, o.Feed) })
	s.cluster.set(manyProviders(500)...)
	events := s.follow(t)

	get(t, s.url+"dependencies", nil)
	g.Eventually(searches.Load, 10*time.Second).Should(BeEquivalentTo(500))
	g.Expect(most.Load()).To(BeNumerically("<=", 4))

	// The first answer is reported at once, and the others together.
	g.Eventually(events, 10*time.Second).Should(Receive(Equal("changed: *")))
}

func manyProviders(n int) []v1alpha2.Provider {
	many := make([]v1alpha2.Provider, n)
	for i := range many {
		many[i] = aws(fmt.Sprintf("aws-%d", i))
	}

	return many
}

// TestFirstDependencies checks that the list of 500 providers is rendered fast, and waits for no search.
func TestFirstDependencies(t *testing.T) {
	g := NewWithT(t)
	read := func(ctx context.Context, _ v1alpha2.Provider) (facts.Usage, error) {
		<-ctx.Done()
		return facts.Usage{}, ctx.Err()
	}
	s := newSite(t, func(o *ui.Options) { o.Usages = ui.NewUsages(t.Context(), read, o.Feed) })
	s.cluster.set(manyProviders(500)...)
	s.cluster.err = errors.New("the page needs nothing but the resources")

	fastest := time.Hour

	for range 5 { // the machine may be busy
		start := time.Now()
		response, body := get(t, s.url+"dependencies", nil)
		fastest = min(fastest, time.Since(start))

		g.Expect(response.code).To(Equal(http.StatusOK))
		g.Expect(strings.Count(body, `<div class="node-head">`)).To(Equal(500))
		g.Expect(body).To(ContainSubstring("The objects of 500 providers are being looked up."))
	}

	g.Expect(fastest).To(BeNumerically("<", 300*time.Millisecond))
}
