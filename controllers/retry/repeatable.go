package retry

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// repeatable reports whether a request may take effect several times.
func repeatable(request *http.Request) bool {
	if request.Body != nil && request.Body != http.NoBody && request.GetBody == nil {
		return false
	}

	query := request.URL.Query()

	switch request.Method {
	case http.MethodGet, http.MethodHead:
		return !query.Has("watch") // informers retry their watches
	case http.MethodDelete:
		return true
	case http.MethodPatch:
		return types.PatchType(request.Header.Get("Content-Type")) != types.JSONPatchType
	case http.MethodPost:
		return query.Has("dryRun") || isReview(request.URL.Path)
	}

	return false
}

// isReview reports whether a path is one of the reviews, such as SelfSubjectAccessReviews, which are
// created but never stored.
func isReview(path string) bool {
	review := strings.HasPrefix(path, "/apis/authorization.k8s.io/") ||
		strings.HasPrefix(path, "/apis/authentication.k8s.io/")

	return review && strings.HasSuffix(path, "reviews")
}
