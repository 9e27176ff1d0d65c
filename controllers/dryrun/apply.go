package dryrun

import (
	"encoding/json"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"
)

// change is a request that changes an object.
type change struct {
	method, contentType string
	body                []byte
}

// apply returns an object after a change; nil if it is gone. before is nil if it does not exist.
func apply(
	c change, at address, before *unstructured.Unstructured, version func() string,
) (*unstructured.Unstructured, *apierrors.StatusError) {
	applies := strings.HasPrefix(c.contentType, string(types.ApplyPatchType))

	switch {
	case c.method == http.MethodPost && before != nil:
		return nil, apierrors.NewAlreadyExists(at.groupResource(), at.name)
	case c.method != http.MethodPost && before == nil && !applies:
		return nil, apierrors.NewNotFound(at.groupResource(), at.name)
	case c.method == http.MethodDelete:
		return deleted(before), nil
	}

	after, err := c.result(before)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}

	complete(after, at, before)
	after.SetResourceVersion(version())

	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		return nil, nil
	}

	return after, nil
}

// result returns an object with the change.
func (c change) result(before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after := &unstructured.Unstructured{}

	if c.method == http.MethodPost || c.method == http.MethodPut {
		return after, after.UnmarshalJSON(c.body)
	}

	patch, err := yaml.YAMLToJSON(c.body)
	if err != nil {
		return nil, err
	}

	old := []byte("{}")
	if before != nil {
		if old, err = before.MarshalJSON(); err != nil {
			return nil, err
		}
	}

	var changed []byte

	if strings.HasPrefix(c.contentType, string(types.JSONPatchType)) {
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}

		if changed, err = operations.Apply(old); err != nil {
			return nil, err
		}
	} else if changed, err = jsonpatch.MergePatch(old, patch); err != nil {
		return nil, err
	}

	return after, json.Unmarshal(changed, &after.Object)
}

// complete sets what an API server sets.
func complete(after *unstructured.Unstructured, at address, before *unstructured.Unstructured) {
	if at.namespace != "" {
		after.SetNamespace(at.namespace)
	}

	if at.name != "" {
		after.SetName(at.name)
	}

	if before == nil {
		after.SetUID(uuid.NewUUID())
		after.SetCreationTimestamp(metav1.Now())
		after.SetGeneration(1)

		return
	}

	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())

	after.SetGeneration(before.GetGeneration())

	if !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
}

// deleted returns an object after its deletion; nil if it is gone.
func deleted(o *unstructured.Unstructured) *unstructured.Unstructured {
	if len(o.GetFinalizers()) == 0 {
		return nil
	}

	now := metav1.Now()
	o.SetDeletionTimestamp(&now)

	return o
}
