package callers

import (
	"context"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientauthentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	clientauthorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/ui"
)

// Limits of the requests about callers. They have a budget of their own, so that viewers never use up the operator's.
const (
	reviewsPerSecond = 50
	reviewsBurst     = 200
)

// unauthenticated is the group of the anonymous user.
const unauthenticated = "system:unauthenticated"

// reviewer asks the API server about callers, with their credentials.
type reviewer struct{ authentication, authorization rest.Interface }

func newReviewer(config *rest.Config) (*reviewer, error) {
	config = rest.AnonymousClientConfig(config)
	config.RateLimiter = nil
	config.QPS, config.Burst = reviewsPerSecond, reviewsBurst

	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}

	authentication, err := clientauthentication.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}

	authorization, err := clientauthorization.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}

	return &reviewer{authentication.RESTClient(), authorization.RESTClient()}, nil
}

// user returns the name of the user with these credentials. The error is a *ui.RefusedError.
func (r *reviewer) user(ctx context.Context, of credentials) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	request := of.addTo(r.authentication.Post().Resource("selfsubjectreviews"))

	if err := request.Body(review).Do(ctx).Into(review); err != nil {
		return "", refusal(ctx, err)
	}

	user := review.Status.UserInfo
	if user.Username == "" || slices.Contains(user.Groups, unauthenticated) {
		return "", &ui.RefusedError{Code: http.StatusUnauthorized, Message: "The anonymous user has no status page."}
	}

	return user.Username, nil
}

// allows reports whether the user with these credentials may do something. The error is a *ui.RefusedError.
func (r *reviewer) allows(
	ctx context.Context, of credentials, what *authorizationv1.ResourceAttributes,
) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what},
	}
	request := of.addTo(r.authorization.Post().Resource("selfsubjectaccessreviews"))

	if err := request.Body(review).Do(ctx).Into(review); err != nil {
		return false, refusal(ctx, err)
	}

	return review.Status.Allowed && !review.Status.Denied, nil
}

// refusal returns what a caller is answered if the API server did not accept the credentials, or could not be asked.
func refusal(ctx context.Context, err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return &ui.RefusedError{
			Code:    http.StatusUnauthorized,
			Message: "The API server does not accept your token; it may have expired. Sign in again.",
		}
	case apierrors.IsForbidden(err):
		return &ui.RefusedError{
			Code:    http.StatusForbidden,
			Message: "The API server does not accept who the request is from: " + err.Error(),
		}
	}

	// The error may contain addresses, which are not for senders who are unknown.
	ctrl.LoggerFrom(ctx).WithName("ui").Error(err, "unable to ask the API server about a caller of the status page")

	return &ui.RefusedError{
		Code:    http.StatusServiceUnavailable,
		Message: "The API server cannot be asked who you are and what you may read. Try again in a few seconds.",
	}
}
