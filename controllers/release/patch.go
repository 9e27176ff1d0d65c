package release

import (
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
)

// threeWay computes the patch that makes of live what target says: everything in target is set,
// everything in base that is not in target is removed, the rest (what other programs have added)
// stays. Kinds that Kubernetes brings are merged by their own rules, list items by key; custom
// resources as JSON. An empty patch is nil.
func threeWay(target *resource.Info, base, live runtime.Object) ([]byte, types.PatchType, error) {
	kind := types.MergePatchType

	patch, err := func() ([]byte, error) {
		var documents [3][]byte

		for i, object := range []runtime.Object{base, target.Object, live} {
			document, err := json.Marshal(object)
			if err != nil {
				return nil, err
			}

			documents[i] = document
		}

		typed := kube.AsVersioned(target)
		if _, custom := typed.(runtime.Unstructured); custom {
			return jsonmergepatch.CreateThreeWayJSONMergePatch(documents[0], documents[1], documents[2])
		}

		kind = types.StrategicMergePatchType

		schema, err := strategicpatch.NewPatchMetaFromStruct(typed)
		if err != nil {
			return nil, err
		}

		return strategicpatch.CreateThreeWayMergePatch(documents[0], documents[1], documents[2], schema, true)
	}()
	if err != nil {
		return nil, kind, fmt.Errorf("compute the change: %w", err)
	}

	if len(patch) == 0 || string(patch) == "{}" {
		return nil, kind, nil
	}

	return patch, kind, nil
}

// builtIn reports whether the kind is one that Kubernetes brings.
func builtIn(info *resource.Info) bool {
	_, custom := kube.AsVersioned(info).(runtime.Unstructured)
	return !custom
}
