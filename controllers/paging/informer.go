package paging

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// listed is how many objects an informer lists at a time: as large as possible, they have 15 MiB.
const listed = 10

// stripped is a page of a list whose objects were stripped.
type stripped struct {
	metav1.ListInterface
	list runtime.Object
}

// ListWatcher returns the lists and watches of an informer that keeps only the fields that strip, which changes an
// object, leaves. If the API server cannot stream the initial list, the objects are listed in small pages, and each
// page is stripped before the next request.
func ListWatcher(from toolscache.ListerWatcher, strip toolscache.TransformFunc) toolscache.ListerWatcher {
	all := toolscache.ToListerWatcherWithContext(from)

	list := func(ctx context.Context, options metav1.ListOptions) (stripped, error) {
		found, err := all.ListWithContext(ctx, options)
		if err != nil {
			return stripped{}, err
		}

		err = meta.EachListItem(found, func(o runtime.Object) error {
			_, err := strip(o)
			return err
		})
		if err != nil {
			return stripped{}, err
		}

		accessor, err := meta.ListAccessor(found)

		return stripped{accessor, found}, err
	}

	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			// API servers send everything at once to those that ask for any version, such as "0".
			options.ResourceVersion = ""
			options.ResourceVersionMatch = ""
			options.Limit = listed

			page, err := Page(ctx, options, list)

			return page.list, err
		},
		WatchFuncWithContext: all.WatchWithContext,
	}, from)
}
