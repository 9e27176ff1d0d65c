package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/test/bed"
)

// checkFencing checks that an operator changed nothing after the other one had taken over the Lease.
func (w *world) checkFencing() error {
	requests, err := w.bed.Requests(func(r bed.Request) bool {
		return strings.HasPrefix(r.User, "operator-") && r.Write() && r.Code < 300 && r.Resource != "events"
	})
	if err != nil {
		return err
	}

	slices.SortFunc(requests, func(a, b bed.Request) int { return a.Received.Compare(b.Received) })

	holder := ""

	for _, request := range requests {
		switch {
		case request.Lease():
			holder = request.User
		case holder != "" && request.User != holder:
			return fmt.Errorf("%s sent %s %s at %s, after %s had become the leader",
				request.User, request.Verb, request.URI, request.Received.Format("15:04:05.000"), holder)
		}
	}

	return nil
}
