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

// HookError means that a hook is running, or that its objects are being deleted. The action continues with another call
// once it has ended.
type HookError struct {
	// What is waited for.
	What string
	// Next is when to look again: no watch shows the end of a hook.
	Next time.Time
}

func (e *HookError) Error() string { return "waiting for " + e.What }

// HookTime limits how long a hook may take.
type HookTime struct {
	Now   time.Time
	Limit time.Duration
}

// CheckHook returns a *HookError until the Jobs and Pods of a hook, which was created at a time, have completed.
// Another error says that one of them has failed, or takes too long.
func (c *Client) CheckHook(list ResourceList, created time.Time, now HookTime) error {
	awaited := list.Filter(func(info *resource.Info) bool {
		kind := info.Mapping.GroupVersionKind.Kind
		return kind == "Job" || kind == "Pod"
	})

	left, err := c.unended(awaited, hookEnded)
	if err != nil {
		return fmt.Errorf("%s: %w", naming("hook", awaited), err)
	}

	return now.check(naming("hook", left), len(left), created)
}

// DeleteHook deletes the objects of a hook, unless they are of a protected kind. It returns a *HookError until they are
// gone.
func (c *Client) DeleteHook(content string, now HookTime) error {
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

	since := now.Now

	left, err := c.unended(list, func(live *unstructured.Unstructured) (bool, error) {
		if live != nil && live.GetDeletionTimestamp() != nil && live.GetDeletionTimestamp().Time.Before(since) {
			since = live.GetDeletionTimestamp().Time
		}

		return live == nil, nil
	})

	what := naming("the deletion of hook", left)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}

	return now.check(what, len(left), since)
}

// naming names the objects of a hook.
func naming(what string, list ResourceList) string {
	for _, info := range list {
		what += " " + KeyOf(info).String()
	}

	return what
}

// Bounds of the time between two looks at a hook.
const (
	minHookInterval = 500 * time.Millisecond
	maxHookInterval = 10 * time.Second
)

// check returns a *HookError if something is left that has been waited for since a time, and another error if that
// takes too long.
func (t HookTime) check(what string, left int, since time.Time) error {
	age := t.Now.Sub(since)

	switch {
	case left == 0:
		return nil
	case age >= t.Limit:
		return fmt.Errorf("%s: it takes longer than %s", what, t.Limit)
	}

	interval := min(max(age/4, minHookInterval), maxHookInterval, t.Limit-age)

	return &HookError{What: what, Next: t.Now.Add(interval)}
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
