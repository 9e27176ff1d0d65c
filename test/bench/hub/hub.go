package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/bench/measure"
	"github.com/capstan-project/capstan/test/harness"
)

// The versions of all providers before and after the upgrade.
const older, newer = "v1.0.0", "v1.1.0"

// shardLabel is the label of provider resources that says which operator manages them.
const shardLabel = "bench.capstan.dev/shard"

// hub is a cluster with operators and with the resources of providers in targets.
type hub struct {
	options
	size int

	bed, behind *bed.Bed      // the hub, and what is behind the targets
	here, there client.Client // of these, as the user admin
	seen        requests
	shards      []*shard
	targets     []*target // of all shards
	providers   []v1alpha2.Provider
}

// shard is an operator with the targets that it serves.
type shard struct {
	operator *harness.Operator
	user     string
	targets  []*target
}

// start starts everything; the resources of the providers do not exist yet.
func (h *hub) start(ctx context.Context) (err error) {
	if h.bed, err = bed.Start(ctx, bed.Options{Nodes: -1}); err != nil {
		return err
	}

	if h.here, err = harness.Prepare(ctx, h.bed.Config(), "."); err != nil {
		return err
	}

	// An upgrade runs a second pod of each provider.
	const podsPerNode = 100

	nodes := 1 + 2*len(harness.Standard)*h.size/podsPerNode
	if h.behind, err = bed.Start(ctx, bed.Options{Nodes: nodes, WithoutCertManager: true}); err != nil {
		return err
	}

	if h.there, err = harness.NewClient(h.behind.Config()); err != nil {
		return err
	}

	for i := range h.operators {
		if err := h.startOperator(i); err != nil {
			return err
		}
	}

	for i := range h.size {
		if err := h.addTarget(ctx, i+1, i%h.operators); err != nil {
			return err
		}
	}

	measure.Pause(ctx, settling)

	return errors.Join(h.running(), ctx.Err())
}

// running returns an error if an operator has ended by itself, as one does that is given unknown flags.
func (h *hub) running() error {
	for _, s := range h.shards {
		if ended, err := s.operator.Exited(); ended {
			return fmt.Errorf("%s has ended: %w; see its log with -logs", s.user, err)
		}
	}

	return nil
}

func (h *hub) startOperator(number int) error {
	s := &shard{user: fmt.Sprintf("%s-%d", harness.OperatorUser, number+1)}

	kubeconfig, err := h.bed.KubeconfigFor(s.user)
	if err != nil {
		return err
	}

	flags := h.flags
	if h.operators > 1 {
		flags = append(slices.Clone(flags), fmt.Sprintf("--watch-label-selector=%s=%d", shardLabel, number))
	}

	folder := h.bed.Dir()
	if h.logs != "" {
		folder = h.logs
	}

	log := filepath.Join(folder, fmt.Sprintf("%s-of-%d-targets.log", s.user, h.size))

	s.operator, err = harness.StartOperatorAs(h.bed, kubeconfig, []string{h.program}, log, flags...)
	if err != nil {
		return err
	}

	h.shards = append(h.shards, s)

	return nil
}

// addTarget starts a target, and creates what its providers need.
func (h *hub) addTarget(ctx context.Context, number, operator int) error {
	config, err := h.behind.ConfigFor("targets")
	if err != nil {
		return err
	}

	t, err := newTarget(number, config, &h.seen, h.delay)
	if err != nil {
		return err
	}

	s := h.shards[operator]
	h.targets, s.targets = append(h.targets, t), append(s.targets, t)

	for _, wanted := range harness.Standard {
		for _, version := range []string{newer, older} {
			r := release(t.namespace, wanted.Label, version)
			if err := r.Prepare(ctx, h.here); err != nil {
				return err
			}

			if version == older {
				p := measure.Remote(r)
				p.SetLabels(map[string]string{shardLabel: strconv.Itoa(operator)})
				h.providers = append(h.providers, p)
			}
		}
	}

	return h.here.Create(ctx, measure.Kubeconfig(t.namespace, t.address, t.certificate))
}

// release returns a small provider with a label, such as infrastructure-aws. Its cluster-wide objects have names and
// labels by which targets tell theirs apart.
func release(namespace, label, version string) *harness.Release {
	providerType, name := v1alpha2.ParseLabel(label)
	key := types.NamespacedName{Namespace: namespace, Name: name}

	r := harness.Small(providerType, key, objectName(everywhere, label), version)
	r.Bundle.Components = []byte(strings.NewReplacer(
		"small.cluster.x-k8s.io", everywhere+".cluster.x-k8s.io",
		"\nmetadata:\n", fmt.Sprintf("\nmetadata:\n  labels: {%s: %s}\n", targetLabel, everywhere),
	).Replace(string(r.Bundle.Components)))

	return r
}

// objectName returns the name of the objects of a provider.
func objectName(token, label string) string { return token + strings.ReplaceAll(label, "-", "") }

func (h *hub) stop() (err error) {
	for _, s := range h.shards {
		err = errors.Join(err, s.operator.Stop())
	}

	for _, t := range h.targets {
		t.stop()
	}

	for _, b := range []*bed.Bed{h.bed, h.behind} {
		if b != nil {
			err = errors.Join(err, b.Stop())
		}
	}

	return err
}
