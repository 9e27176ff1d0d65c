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
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// reviewTimeout limits how long the API server may take to answer who may read the metrics.
	reviewTimeout = 10 * time.Second
	// answerTime is for how long an answer is used, and maxAnswers how many answers are kept.
	answerTime = time.Minute
	maxAnswers = 1024
)

// access lets those read the metrics who may get their path, according to the API server. controller-runtime's filter
// does the same with the authenticators of the API server itself, which bring more than a tenth of the operator's
// packages.
type access struct {
	tokens  authenticationclient.TokenReviewsGetter
	users   authorizationclient.SubjectAccessReviewsGetter
	answers *cache.LRUExpireCache // statuses of HTTP by request
}

// request is what an answer is for.
type request struct {
	token      [sha256.Size]byte
	verb, path string
}

// newAccessFilter returns the filter of the metrics server.
func newAccessFilter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}

	users, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}

	return newAccess(tokens, users).filter, nil
}

func newAccess(
	tokens authenticationclient.TokenReviewsGetter, users authorizationclient.SubjectAccessReviewsGetter,
) *access {
	return &access{tokens: tokens, users: users, answers: cache.NewLRUExpireCache(maxAnswers)}
}

// filter returns a handler that passes on only the requests that are allowed.
func (a *access) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
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
	}), nil
}

// check returns the status of the answer to a request, which is OK if it is allowed.
func (a *access) check(r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}

	asked := request{token: sha256.Sum256([]byte(token)), verb: strings.ToLower(r.Method), path: r.URL.Path}
	if status, known := a.answers.Get(asked); known {
		return status.(int), nil
	}

	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()

	status, err := a.review(ctx, token, asked)
	if err == nil {
		a.answers.Add(asked, status, answerTime)
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
