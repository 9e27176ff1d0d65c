package cluster

import (
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
)

// Patch is a change of an object.
type Patch struct {
	Type types.PatchType
	Data []byte
}

// NewPatch returns the three-way patch that turns live into the target. It sets all fields of the
// target, removes the fields of base that the target does not have, and keeps all others, which
// other programs have added. Built-in kinds are merged by their own rules, list items by key;
// custom resources are merged as JSON. It returns nil if there is nothing to change.
func NewPatch(target *resource.Info, base runtime.Object, live *unstructured.Unstructured) (*Patch, error) {
	patch, err := newPatch(target, base, live)
	if err != nil {
		return nil, fmt.Errorf("compute the change: %w", err)
	}

	if len(patch.Data) == 0 || string(patch.Data) == "{}" {
		return nil, nil
	}

	return patch, nil
}

func newPatch(target *resource.Info, base runtime.Object, live *unstructured.Unstructured) (*Patch, error) {
	before, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}

	wanted, err := json.Marshal(target.Object)
	if err != nil {
		return nil, err
	}

	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}

	typed := kube.AsVersioned(target)
	if _, custom := typed.(runtime.Unstructured); custom {
		data, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, wanted, current)
		return &Patch{Type: types.MergePatchType, Data: data}, err
	}

	schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return nil, err
	}

	data, err := strategicpatch.CreateThreeWayMergePatch(before, wanted, current, schema, true)

	return &Patch{Type: types.StrategicMergePatchType, Data: data}, err
}

// DryRun returns what would become of an object with the patch.
func (c *Client) DryRun(info *resource.Info, patch *Patch) (*unstructured.Unstructured, error) {
	patched, err := c.helper(info).DryRun(true).Patch(info.Namespace, info.Name, patch.Type, patch.Data, nil)
	if err != nil {
		return nil, err
	}

	return patched.(*unstructured.Unstructured), nil
}
