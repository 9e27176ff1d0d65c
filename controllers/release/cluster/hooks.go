package cluster

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/manifest"
)

// Hook returns the objects of a hook's manifest. The error is an *UnknownKindError if a kind does not exist.
func (c *Client) Hook(content string) (ResourceList, error) {
	list, unknown, err := c.parse(content)
	if err == nil && len(unknown) > 0 {
		err = &UnknownKindError{Objects: unknown}
	}

	return list, err
}

// CreateHook creates the objects of a hook. If an earlier attempt was started, they may exist.
func (c *Client) CreateHook(list ResourceList, started bool) error {
	return c.each(list, func(info *resource.Info) error {
		_, err := c.helper(info).Create(info.Namespace, true, info.Object)
		if started && apierrors.IsAlreadyExists(err) {
			return nil
		}

		return err
	})
}

// AwaitHook waits until the Jobs and Pods of a hook have completed. total is the time for all hooks of the action.
func (c *Client) AwaitHook(list ResourceList, total time.Duration) error {
	left, err := c.hooks.take(total, time.Now())
	if err != nil {
		return err
	}

	awaited := list.Filter(func(info *resource.Info) bool {
		kind := info.Mapping.GroupVersionKind.Kind
		return kind == "Job" || kind == "Pod"
	})

	return c.await("hook", awaited, left, hookEnded)
}

// DeleteHook deletes the objects of a hook, unless they are of a protected kind, and waits until they are gone, within
// the same time.
func (c *Client) DeleteHook(content string, total time.Duration) error {
	objects, err := manifest.Decode(content)
	if err != nil {
		return err
	}

	list, _, err := c.Resolve(objects)
	if err != nil {
		return err
	}

	list = list.Filter(func(info *resource.Info) bool { return !isProtected(KeyOf(info).Kind) })
	if err := c.each(list, func(info *resource.Info) error { return c.delete(info, nil) }); err != nil {
		return err
	}

	left, err := c.hooks.left(total, time.Now())
	if err != nil {
		return err
	}

	return c.await("the deletion of hook", list, left, func(live *unstructured.Unstructured) (bool, error) {
		return live == nil, nil
	})
}

// Intervals between two looks at a hook.
const (
	minHookInterval = 200 * time.Millisecond
	maxHookInterval = 2 * time.Second
)

// await waits until something is true of each object of a hook, which is nil if it does not exist. It names them in
// what is shown meanwhile and in the error.
func (c *Client) await(
	what string, list ResourceList, limit time.Duration, ended func(*unstructured.Unstructured) (bool, error),
) error {
	for _, info := range list {
		what += " " + KeyOf(info).String()
	}

	deadline := time.Now().Add(limit)

	wait := func() error {
		for interval := minHookInterval; len(list) > 0; interval = min(2*interval, maxHookInterval) {
			var err error

			if list, err = c.unended(list, ended); err != nil || len(list) == 0 {
				return err
			}

			left := time.Until(deadline)
			if left <= 0 {
				return fmt.Errorf("it takes longer than %s", limit.Round(time.Second))
			}

			time.Sleep(min(interval, left))
		}

		return nil
	}

	if err := awaitHook(wait, func() { c.longWait(what) }); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}

	return nil
}

// unended returns the objects of which something is not true yet.
func (c *Client) unended(
	list ResourceList, ended func(*unstructured.Unstructured) (bool, error),
) (left ResourceList, err error) {
	for _, info := range list {
		live, err := c.Get(info)
		if object.IsRefusal(err) {
			return nil, errors.New(object.Reason(info.Mapping.GroupVersionKind.Kind, err))
		}

		end := false
		if err == nil { // another error may pass
			if end, err = ended(live); err != nil {
				return nil, err
			}
		}

		if !end {
			left = append(left, info)
		}
	}

	return left, nil
}

// hookEnded reports whether a Job or Pod of a hook has completed. The error says that it has failed. One that was
// deleted cannot be waited for.
func hookEnded(live *unstructured.Unstructured) (bool, error) {
	switch {
	case live == nil:
		return true, nil
	case live.GetKind() == "Job":
		return jobEnded(live)
	}

	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	if phase == "Failed" {
		return false, errors.New("it failed")
	}

	return phase == "Succeeded", nil
}

func jobEnded(job *unstructured.Unstructured) (bool, error) {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")

	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["status"] != "True" {
			continue
		}

		switch condition["type"] {
		case "Complete":
			return true, nil
		case "Failed":
			return false, fmt.Errorf("it failed: %v", condition["reason"])
		}
	}

	return false, nil
}
