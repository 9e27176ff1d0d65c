package objectdiff

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What values are replaced with.
const (
	masked       = "<masked %d bytes>"
	maskedChange = "<masked %d bytes, changed>"
)

// secretFields are the fields of a Secret with its values.
var secretFields = []string{"data", "stringData"}

// mask replaces the values in two states of a Secret so that only their sizes, and whether they
// differ, can be seen. Other objects are returned as they are. One of the states can be nil.
func mask(before, after *unstructured.Unstructured) (maskedBefore, maskedAfter *unstructured.Unstructured) {
	if !isSecret(before) && !isSecret(after) {
		return before, after
	}

	return maskSecret(before, after, masked), maskSecret(after, before, maskedChange)
}

func isSecret(o *unstructured.Unstructured) bool {
	return o != nil && o.GetKind() == "Secret" && o.GroupVersionKind().Group == ""
}

// maskSecret masks the values of one state of a Secret. changed is the format for values that are
// different in the other state.
func maskSecret(secret, other *unstructured.Unstructured, changed string) *unstructured.Unstructured {
	if secret == nil {
		return nil
	}

	secret = secret.DeepCopy()

	for _, field := range secretFields {
		values, _, _ := unstructured.NestedMap(secret.Object, field)

		for key, value := range values {
			format := masked
			if isDifferent(value, other, field, key) {
				format = changed
			}

			values[key] = fmt.Sprintf(format, size(field, value))
		}

		if len(values) > 0 {
			secret.Object[field] = values
		}
	}

	return secret
}

// isDifferent reports whether the other state of a Secret has another value for a key. A missing
// value needs no mark, because its line is missing as well.
func isDifferent(value any, other *unstructured.Unstructured, field, key string) bool {
	if other == nil {
		return false
	}

	otherValue, found, _ := unstructured.NestedFieldNoCopy(other.Object, field, key)

	return found && otherValue != value
}

// size returns the number of bytes of a Secret's value.
func size(field string, value any) int {
	text := fmt.Sprint(value)
	if field != "data" {
		return len(text)
	}

	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return len(text)
	}

	return len(decoded)
}
