package storage

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	// RequestLabel is the resource that a revision was requested by: "<UID>.<generation>.<revision>". It
	// is also written to revisions of other programs that were left in place. As in RevisionLabel, the
	// number of the revision tells it from one that Helm has copied.
	RequestLabel = v1alpha2.Prefix + "/request"

	// RequestedAtLabel is the resource's annotation that requested the reconcile. It is valid if
	// RequestLabel is.
	RequestedAtLabel = v1alpha2.Prefix + "/requested-at"

	// AutomaticLabel is the version of an automatic upgrade. It is valid if RequestLabel is.
	AutomaticLabel = v1alpha2.Prefix + "/automatic-upgrade"
)

// RequestLabels returns the labels that record a request with a revision; none for the zero request.
func RequestLabels(request state.Request, revision int) map[string]string {
	if (request == state.Request{}) {
		return nil
	}

	// An empty label replaces that of an earlier request which was handled with the same revision.
	return map[string]string{
		RequestLabel:     fmt.Sprintf("%s.%d.%d", request.UID, request.Generation, revision),
		RequestedAtLabel: request.RequestedAt,
		AutomaticLabel:   request.Automatic,
	}
}

// requestOf returns the request that the labels of a revision record; zero if they record none for it.
func requestOf(labels map[string]string, revision int) state.Request {
	parts := strings.Split(labels[RequestLabel], ".")
	if len(parts) != 3 || parts[2] != strconv.Itoa(revision) {
		return state.Request{}
	}

	generation, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return state.Request{}
	}

	return state.Request{
		UID:         types.UID(parts[0]),
		Generation:  generation,
		RequestedAt: labels[RequestedAtLabel],
		Automatic:   labels[AutomaticLabel],
	}
}
