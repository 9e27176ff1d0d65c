package bundle

import "testing"

// CountDecodes calls the function for each text that is decoded, until the test ends.
func CountDecodes(t *testing.T, decoded func(text string)) {
	lenient, strict := toJSON, toJSONStrict

	t.Cleanup(func() { toJSON, toJSONStrict = lenient, strict })

	counting := func(convert func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
		return func(text []byte) ([]byte, error) {
			decoded(string(text))
			return convert(text)
		}
	}

	toJSON, toJSONStrict = counting(lenient), counting(strict)
}
