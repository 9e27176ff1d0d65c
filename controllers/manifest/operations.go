package manifest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// operands maps the operations of a JSON patch to the field that each needs besides its path.
var operands = map[string]string{
	"add":     "value",
	"copy":    "from",
	"move":    "from",
	"remove":  "",
	"replace": "value",
	"test":    "value",
}

// maxCopied limits the bytes that the operations "copy" of a JSON patch add to an object: each of them
// can double it.
const maxCopied = 256 << 10

// limitCopies sets this limit, which is a global of the library.
var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = maxCopied })

// readOperations returns a JSON patch. It checks the operations, so that errors have the number of the operation.
func readOperations(field string, list []any) (jsonpatch.Patch, error) {
	for i, entry := range list {
		operation, _ := entry.(map[string]any)
		if problem := checkOperation(operation); problem != "" {
			return nil, invalid(field, nil, "operation %d: %s", i+1, problem)
		}
	}

	limitCopies()

	data, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}

	return jsonpatch.DecodePatch(data)
}

// checkOperation describes what is wrong with an operation; it is empty if nothing is.
func checkOperation(operation map[string]any) string {
	op, _ := operation["op"].(string)

	operand, known := operands[op]
	if !known {
		return "op must be one of " + strings.Join(slices.Sorted(maps.Keys(operands)), ", ")
	}

	path, _ := operation["path"].(string)
	if !strings.HasPrefix(path, "/") {
		return "path must begin with /"
	}

	if _, exists := operation[operand]; operand != "" && !exists {
		return op + " needs a " + operand
	}

	return ""
}
