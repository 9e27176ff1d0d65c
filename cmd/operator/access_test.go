package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// TestAccess: only a user of whom the API server says that it may get the path reads the metrics, and the same request
// is reviewed once.
func TestAccess(t *testing.T) {
	for name, c := range map[string]struct {
		header  string
		method  string
		want    int
		reviews int
	}{
		"a reader":            {"Bearer reader", http.MethodGet, http.StatusOK, 2},
		"the scheme in lower": {"bearer reader", http.MethodGet, http.StatusOK, 2},
		"another verb":        {"Bearer reader", http.MethodPost, http.StatusForbidden, 2},
		"another user":        {"Bearer other", http.MethodGet, http.StatusForbidden, 2},
		"an unknown token":    {"Bearer nonsense", http.MethodGet, http.StatusUnauthorized, 1},
		"no token":            {"Bearer ", http.MethodGet, http.StatusUnauthorized, 0},
		"no header":           {"", http.MethodGet, http.StatusUnauthorized, 0},
		"another scheme":      {"Basic reader", http.MethodGet, http.StatusUnauthorized, 0},
		"reviews fail":        {"Bearer failing", http.MethodGet, http.StatusInternalServerError, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			client := fake.NewClientset()

			client.PrependReactor("create", "tokenreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
				review := action.(k8stesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
				if review.Spec.Token == "failing" {
					return true, nil, errors.New("unavailable")
				}

				review.Status.Authenticated = review.Spec.Token != "nonsense"
				review.Status.User = authenticationv1.UserInfo{
					Username: review.Spec.Token, Groups: []string{"scrapers"},
					Extra: map[string]authenticationv1.ExtraValue{"pod": {"prometheus"}},
				}

				return true, review, nil
			})
			client.PrependReactor("create", "subjectaccessreviews",
				func(action k8stesting.Action) (bool, runtime.Object, error) {
					review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
					g.Expect(review.Spec.Groups).To(ConsistOf("scrapers"))
					g.Expect(review.Spec.Extra).To(HaveKeyWithValue("pod", ConsistOf("prometheus")))

					asked := *review.Spec.NonResourceAttributes
					review.Status.Allowed = review.Spec.User == "reader" && asked.Verb == "get" && asked.Path == "/metrics"

					return true, review, nil
				})

			metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("metrics")) })
			handler := newAccess(client.AuthenticationV1(), client.AuthorizationV1()).filter(logr.Discard(), metrics)

			for range 2 {
				request := httptest.NewRequestWithContext(t.Context(), c.method, "/metrics", nil)
				request.Header.Set("Authorization", c.header)

				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, request)
				g.Expect(answer.Code).To(Equal(c.want))
				g.Expect(answer.Body.String() == "metrics").To(Equal(c.want == http.StatusOK))
			}

			g.Expect(client.Actions()).To(HaveLen(c.reviews))
		})
	}
}

// TestReviewsAreLimited: unknown tokens are not passed on to the API server without a limit, and do not make it forget
// who may read the metrics.
func TestReviewsAreLimited(t *testing.T) {
	g := NewWithT(t)
	client := fake.NewClientset()

	client.PrependReactor("create", "tokenreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		review := action.(k8stesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		review.Status.Authenticated = review.Spec.Token == "reader"

		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews",
		func(action k8stesting.Action) (bool, runtime.Object, error) {
			review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
			review.Status.Allowed = true

			return true, review, nil
		})

	access := newAccess(client.AuthenticationV1(), client.AuthorizationV1())
	status := func(token string) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		request.Header.Set("Authorization", "Bearer "+token)

		status, err := access.check(request)
		g.Expect(err).NotTo(HaveOccurred())

		return status
	}

	g.Expect(status("reader")).To(Equal(http.StatusOK))

	begin, seen := time.Now(), map[int]int{}
	for i := range 5000 {
		seen[status(strconv.Itoa(i))]++
	}

	most := 20 + 5*(int(time.Since(begin).Seconds())+1)
	g.Expect(seen[http.StatusUnauthorized]).To(BeNumerically("<=", most))
	g.Expect(seen[http.StatusTooManyRequests]).To(BeNumerically(">=", 5000-most))
	g.Expect(status("reader")).To(Equal(http.StatusOK))
}
