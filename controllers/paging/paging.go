// Package paging lists objects page by page, even if that takes so long that the list expires.
package paging

import (
	"context"
	"errors"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listFunc requests one page.
type listFunc[L metav1.ListInterface] func(context.Context, metav1.ListOptions) (L, error)

// Pages returns all pages of a list, as large as options.Limit. A pair with an error is the last
// one.
func Pages[L metav1.ListInterface](
	ctx context.Context,
	options metav1.ListOptions,
	list listFunc[L],
) iter.Seq2[L, error] {
	return func(yield func(L, error) bool) {
		for {
			page, err := Page(ctx, options, list)
			if !yield(page, err) || err != nil || page.GetContinue() == "" {
				return
			}

			options.Continue = page.GetContinue()
		}
	}
}

// Page returns the page that options.Continue points to. If that token has expired, it continues
// with the token that the API server offers instead: the rest of the list then reflects the present
// objects, not those at the time of the first page.
func Page[L metav1.ListInterface](ctx context.Context, options metav1.ListOptions, list listFunc[L]) (L, error) {
	for {
		page, err := list(ctx, options)

		token := inconsistentToken(err)
		if token == "" || token == options.Continue {
			return page, err
		}

		options.Continue = token
	}
}

// inconsistentToken returns the token in the API server's error about one that has expired. It is
// empty for any other error.
func inconsistentToken(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}

	return status.Status().Continue
}
