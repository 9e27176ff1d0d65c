package paging_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/controllers/paging"
)

// server answers requests by their token.
type server map[string]func() (*metav1.PartialObjectMetadataList, error)

func (s server) list(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return s[options.Continue]()
}

func page(name, next string) func() (*metav1.PartialObjectMetadataList, error) {
	return func() (*metav1.PartialObjectMetadataList, error) {
		item := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}

		return &metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{Continue: next},
			Items:    []metav1.PartialObjectMetadata{item},
		}, nil
	}
}

func expired(token string) func() (*metav1.PartialObjectMetadataList, error) {
	return func() (*metav1.PartialObjectMetadataList, error) {
		err := apierrors.NewResourceExpired("the continue token is too old")
		err.ErrStatus.Continue = token

		return nil, err
	}
}

func TestPages(t *testing.T) {
	for name, c := range map[string]struct {
		server server
		want   []string
		err    string
	}{
		"one page": {
			server: server{"": page("a", "")},
			want:   []string{"a"},
		},
		"several pages": {
			server: server{"": page("a", "1"), "1": page("b", "2"), "2": page("c", "")},
			want:   []string{"a", "b", "c"},
		},
		"a token that has expired": {
			server: server{"": page("a", "1"), "1": expired("later"), "later": page("b", "")},
			want:   []string{"a", "b"},
		},
		"a token that has expired without another": {
			server: server{"": page("a", "1"), "1": expired("")},
			want:   []string{"a"},
			err:    "too old",
		},
		"the same token again": {
			server: server{"": page("a", "1"), "1": expired("1")},
			want:   []string{"a"},
			err:    "too old",
		},
		"another error": {
			server: server{"": func() (*metav1.PartialObjectMetadataList, error) { return nil, errors.New("no connection") }},
			err:    "no connection",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var (
				names []string
				last  error
			)

			for page, err := range paging.Pages(t.Context(), metav1.ListOptions{}, c.server.list) {
				if last = err; err != nil {
					continue
				}

				names = append(names, page.Items[0].Name)
			}

			g.Expect(names).To(Equal(c.want))

			if c.err == "" {
				g.Expect(last).NotTo(HaveOccurred())
			} else {
				g.Expect(last).To(MatchError(ContainSubstring(c.err)))
			}
		})
	}
}
