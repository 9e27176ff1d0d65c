package limit

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v2"
)

// valueSize is the size of a value in addition to its text, in bytes.
const valueSize = 64

// sizeWithAliases returns the size of a document whose aliases are replaced by what they refer to. It uses the
// parser of sigs.k8s.io/yaml, which decodes the document later: parsers disagree on odd documents, and
// another one might refuse a good document or find fewer aliases. The error is an *Error if the document is too large.
func sizeWithAliases(text string) (size int, err error) {
	var root undecoded
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return 0, invalidYAML(err)
	}

	for pending := []undecoded{root}; len(pending) > 0; {
		last := len(pending) - 1
		decode := pending[last]
		pending = pending[:last]

		children, ownSize, err := decode.content()
		if err != nil {
			return 0, invalidYAML(err)
		}

		// The size of the children counts before they are decoded, so it also limits how many are pending.
		if size += ownSize + valueSize*len(children); size > maxExpanded {
			return 0, exceeded("is larger than %d MiB once its aliases are expanded", maxExpanded>>20)
		}

		pending = append(pending, children...)
	}

	return size, nil
}

// undecoded is a value of a document that is decoded only when the function is called, one level at a time.
// It is nil for the value null.
type undecoded func(into any) error

// UnmarshalYAML implements yaml.Unmarshaler.
func (u *undecoded) UnmarshalYAML(decode func(any) error) error {
	*u = decode

	return nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The parser calls it instead of UnmarshalYAML for the
// texts "null" and "~" in quotes, which are too short to matter.
func (*undecoded) UnmarshalText([]byte) error { return nil }

// content returns the children of a value, and the size of its text or its keys in bytes.
func (u undecoded) content() (children []undecoded, size int, err error) {
	var (
		text   string
		list   []undecoded
		fields map[string]undecoded
	)

	switch {
	case u == nil:
		return nil, 0, nil
	case u(&text) == nil:
		return nil, len(text), nil
	case u(&list) == nil:
		return list, 0, nil
	}

	if err := u(&fields); err != nil {
		return nil, 0, err
	}

	for key, value := range fields {
		children = append(children, value)
		size += valueSize + len(key)
	}

	return children, size, nil
}

// invalidYAML returns the error for a document that the parser refuses, of which it quotes names. It is no *Error.
func invalidYAML(err error) error {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")

	var wrongType *yaml.TypeError
	if errors.As(err, &wrongType) {
		reason = "a key is not a text" // the parser names types of Go
	}

	return fmt.Errorf("has anchors and is not valid YAML: %s", reason)
}
