package bundle

import (
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
)

// CountDecodes calls the function for each document that is decoded, or read for the places of its nodes, until the
// test ends.
func CountDecodes(t *testing.T, decoded func(text string)) {
	lenient, strict, nodes := toJSON, toJSONStrict, readNodes

	t.Cleanup(func() { toJSON, toJSONStrict, readNodes = lenient, strict, nodes })

	counting := func(convert func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
		return func(text []byte) ([]byte, error) {
			decoded(string(text))
			return convert(text)
		}
	}

	toJSON, toJSONStrict = counting(lenient), counting(strict)
	readNodes = func(text string) (*yamlv3.Node, error) {
		decoded(text)
		return nodes(text)
	}
}
