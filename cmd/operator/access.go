package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// reviewTimeout limits how long the API server may take to answer who may read the metrics.
	reviewTimeout = 10 * time.Second
	// answerTime is for how long an answer is used, and maxAnswers how many answers are kept.
	answerTime = time.Minute
	maxAnswers = 1024
	// reviewsPerSecond and reviewsAtOnce limit what is asked for tokens that are not known: anybody may send some.
	reviewsPerSecond = 5
	reviewsAtOnce    = 20
)

// access lets those read the metrics who may get their path, according to the API server. controller-runtime's filter
// does the same with the authenticators of the API server itself, which bring more than a tenth of the operator's
// packages.
type access struct {
	tokens  authenticationclient.TokenReviewsGetter
	users   authorizationclient.SubjectAccessReviewsGetter
	reviews flowcontrol.PassiveRateLimiter
	// allowed are the requests that are allowed, and refused the statuses of HTTP of others, which are so many that they
	// would replace them.
	allowed, refused *cache.LRUExpireCache
}

// request is what an answer is for.
type request struct {
	token      [sha256.Size]byte
	verb, path string
}

// restricted returns a handler of the metrics for those who may read them.
func restricted(mgr ctrl.Manager, metrics http.Handler) (http.Handler, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}

	users, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}

	return newAccess(tokens, users).filter(mgr.GetLogger(), metrics), nil
}

func newAccess(
	tokens authenticationclient.TokenReviewsGetter, users authorizationclient.SubjectAccessReviewsGetter,
) *access {
	return &access{
		tokens: tokens, users: users,
		reviews: flowcontrol.NewTokenBucketPassiveRateLimiter(reviewsPerSecond, reviewsAtOnce),
		allowed: cache.NewLRUExpireCache(maxAnswers), refused: cache.NewLRUExpireCache(maxAnswers),
	}
}

// filter returns a handler that passes on only the requests that are allowed.
func (a *access) filter(log logr.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := a.check(r)

		switch {
		case err != nil:
			log.Error(err, "Cannot find out who may read the metrics")
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		case status != http.StatusOK:
			http.Error(w, http.StatusText(status), status)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// check returns the status of the answer to a request, which is OK if it is allowed.
func (a *access) check(r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}

	asked := request{token: sha256.Sum256([]byte(token)), verb: strings.ToLower(r.Method), path: r.URL.Path}
	if _, known := a.allowed.Get(asked); known {
		return http.StatusOK, nil
	}

	if status, known := a.refused.Get(asked); known {
		return status.(int), nil
	}

	if !a.reviews.TryAccept() {
		return http.StatusTooManyRequests, nil
	}

	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()

	status, err := a.review(ctx, token, asked)

	switch {
	case err != nil:
	case status == http.StatusOK:
		a.allowed.Add(asked, status, answerTime)
	default:
		a.refused.Add(asked, status, answerTime)
	}

	return status, err
}

// review asks the API server whose token it is, and whether that user may do this.
func (a *access) review(ctx context.Context, token string, asked request) (int, error) {
	who, err := a.tokens.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review a token: %w", err)
	}

	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}

	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))

	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}

	may, err := a.users.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: asked.path, Verb: asked.verb},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}

	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}

	return http.StatusOK, nil
}
