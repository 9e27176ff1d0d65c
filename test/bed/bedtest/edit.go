package bedtest

import (
	"context"
	"reflect"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Edit reads an object and updates it with a change, and again if another program, such as a controller that writes
// its status, has changed it in between.
func Edit[O client.Object](
	ctx context.Context, c client.Client, object O, change func(O), options ...client.UpdateOption,
) error {
	key, kind := client.ObjectKeyFromObject(object), object.GetObjectKind().GroupVersionKind()

	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		// Get would keep fields that the API server does not have.
		reflect.ValueOf(object).Elem().SetZero()
		object.GetObjectKind().SetGroupVersionKind(kind)

		if err := c.Get(ctx, key, object); err != nil {
			return err
		}

		change(object)

		return c.Update(ctx, object, options...)
	})
}
