package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
)

// claims are the providers that are being installed for the first time: of several resources that
// define the same provider of a cluster, one installs it.
type claims struct {
	mu      sync.Mutex
	holders map[claim]types.UID
}

// claim is a provider of a cluster.
type claim struct {
	cluster string
	kind    v1alpha2.ProviderType
	name    string
}

func claimOf(p v1alpha2.Provider) claim {
	return claim{cluster: v1alpha2.Cluster(p), kind: p.ProviderType(), name: p.GetName()}
}

// take reports whether the resource may install its provider, which no other can do until release.
func (c *claims) take(p v1alpha2.Provider) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	if holder, taken := c.holders[claimOf(p)]; taken {
		return holder == p.GetUID()
	}

	if c.holders == nil {
		c.holders = map[claim]types.UID{}
	}

	c.holders[claimOf(p)] = p.GetUID()

	return true
}

// release ends the claim of a resource, if it has one.
func (c *claims) release(p v1alpha2.Provider) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.holders[claimOf(p)] == p.GetUID() {
		delete(c.holders, claimOf(p))
	}
}

// checkIdentity stops the change of a resource that may not exist, such as a second one of a provider.
func (r *run) checkIdentity(ctx context.Context) Result {
	err := r.Preflight.Identity(ctx, r.provider, r.recorded(ctx))
	r.identified = err == nil

	return failed(err, fetching)
}

// recorded returns a function that reports whether Helm's storage in the target cluster has a release
// of a provider.
func (r *run) recorded(ctx context.Context) func(v1alpha2.Provider) bool {
	return func(p v1alpha2.Provider) bool { return r.target.HasRelease(ctx, plan.ReleaseKey(p)) }
}

// claim makes sure that no other resource installs the provider at the same time. The claim lasts until
// the status says that the provider is installed. The cache may not have the status of another
// resource yet, so that is read from the API server.
func (r *run) claim(ctx context.Context) Result {
	if !r.applies() || r.provider.GetStatus().Release != nil {
		return Result{}
	}

	if !r.claims.take(r.provider) {
		return waiting(v1alpha2.MoreThanOneProviderInstanceExistsReason, fmt.Sprintf(
			"another resource installs %s %s into the same cluster, which can have each provider only once; "+
				"delete one of the two", r.provider.ProviderType(), r.provider.GetName()), time.Now().Add(minRetry))
	}

	current := &preflight.Checker{Client: r.APIReader}

	return failed(current.Identity(ctx, r.provider, r.recorded(ctx)), applying)
}

// foreignError reports that the provider's release has the name of one that was created for something
// else. To upgrade that one would delete all of its objects.
type foreignError struct {
	release  string // namespace/name
	revision int
	chart    string
}

func (e *foreignError) Error() string {
	return fmt.Sprintf(
		"Helm release %s was created by another program and is not this provider's: revision %d contains %s; uninstall "+
			"it or move it to another name, or set the annotation %s: \"true\" on this resource to replace it, which "+
			"deletes its objects that the provider does not have",
		e.release, e.revision, e.chart, v1alpha2.AdoptReleaseAnnotation)
}

// belongsToOthers reports whether the release that was observed was created for something else. A
// release of the provider's own chart, which a user has installed with Helm, is adopted. The record is
// nil if it cannot be read.
func (r *run) belongsToOthers(record *release.Record) bool {
	known := r.provider.GetStatus().Release != nil
	allowed := r.provider.GetAnnotations()[v1alpha2.AdoptReleaseAnnotation] == "true"

	if known || allowed || !r.installed.history.Foreign() {
		return false
	}

	return record == nil || record.Provider != v1alpha2.Label(r.provider)
}

// describeChart describes the chart of a record for messages.
func describeChart(record *release.Record) string {
	if record == nil {
		return "a chart that cannot be read"
	}

	return fmt.Sprintf("chart %s %s", record.ChartName, record.ChartVersion)
}
