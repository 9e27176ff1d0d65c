package fresh_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/controllers/fresh"
)

var roles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

// listed is an API server that has objects, and takes a second for each page of a list.
type listed struct {
	metadata.Interface
	metadata.Getter

	mu       sync.Mutex
	objects  int
	err      error
	requests int
}

func (l *listed) Resource(schema.GroupVersionResource) metadata.Getter { return l }

func (l *listed) List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.requests++
	list := &metav1.PartialObjectMetadataList{}

	first := 0
	if options.Continue != "" {
		_, _ = fmt.Sscan(options.Continue, &first)
	}

	for i := first; i < l.objects; i++ {
		if i == first+int(options.Limit) {
			list.Continue = fmt.Sprint(i)
			break
		}

		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}})
	}

	time.Sleep(time.Second)

	return list, l.err
}

func nameOf(o *metav1.PartialObjectMetadata) string { return o.Name }

// TestSharedLists checks how many requests are made for lists, and that none is used that is too old.
func TestSharedLists(t *testing.T) {
	for name, c := range map[string]struct {
		server *listed
		// since is how long before each list its reader wants it to have begun, and after how long it asks.
		since, after []time.Duration
		wantRequests int
	}{
		"later readers share a list": {
			since: []time.Duration{time.Second, 4 * time.Second}, after: []time.Duration{0, 2 * time.Second}, wantRequests: 1,
		},
		"one who asks meanwhile": {
			since: []time.Duration{time.Second, time.Second}, after: []time.Duration{0, 0}, wantRequests: 1,
		},
		"not a list that began before": {
			since: []time.Duration{time.Second, time.Second}, after: []time.Duration{0, 2 * time.Second}, wantRequests: 2,
		},
		"not an old list": {
			since: []time.Duration{time.Second, time.Hour}, after: []time.Duration{0, 11 * time.Second}, wantRequests: 2,
		},
		"several pages": {
			server: &listed{objects: 1200},
			since:  []time.Duration{time.Second, time.Hour}, after: []time.Duration{0, 4 * time.Second}, wantRequests: 3,
		},
		"nothing is asked again that is forbidden": {
			server: &listed{err: apierrors.NewForbidden(roles.GroupResource(), "", nil)},
			since:  []time.Duration{time.Second, 0}, after: []time.Duration{0, time.Minute}, wantRequests: 1,
		},
		"nor what is too long": {
			server: &listed{objects: 2001},
			since:  []time.Duration{time.Second, 0}, after: []time.Duration{0, time.Minute}, wantRequests: 4,
		},
		"a failed list is asked again": {
			server: &listed{err: apierrors.NewInternalError(context.DeadlineExceeded)},
			since:  []time.Duration{time.Second, time.Hour}, after: []time.Duration{0, 2 * time.Second}, wantRequests: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := cmp.Or(c.server, &listed{})

			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				shared := fresh.NewShared(server, "", nameOf)

				var readers sync.WaitGroup

				for i, since := range c.since {
					readers.Go(func() {
						time.Sleep(c.after[i])

						found, err := shared.List(t.Context(), roles, time.Now().Add(-since))

						switch {
						case server.objects > 2000:
							g.Expect(err).To(MatchError(fresh.ErrTooMany))
						case server.err != nil:
							g.Expect(err).To(MatchError(server.err))
						default:
							g.Expect(err).NotTo(HaveOccurred())
							g.Expect(found).To(HaveLen(server.objects))
						}
					})
				}

				readers.Wait()
				g.Expect(server.requests).To(Equal(c.wantRequests))
				time.Sleep(time.Hour) // for the lists to be forgotten
			})
		})
	}
}

func TestSharedListWithoutPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		server := &listed{objects: 1}
		shared := fresh.NewShared(server, "", nameOf)
		since := time.Now().Add(-time.Second)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()

		_, err := shared.List(ctx, roles, since)
		g.Expect(err).To(MatchError(context.DeadlineExceeded))

		g.Expect(shared.List(t.Context(), roles, since)).To(HaveExactElements("0"))
		g.Expect(server.requests).To(Equal(1), "others wait for the same list")
		time.Sleep(time.Hour)
	})
}
