package objectdiff

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// minPart is the length from which on a value is masked inside other texts. Shorter ones are only masked where they
	// are a whole field, because they are parts of many words.
	minPart = 4
	// minLine is the same for a single line of a value.
	minLine = 8
)

// Masker replaces values with the names of their variables, wherever they are in objects.
type Masker struct {
	whole map[string]string
	parts *strings.Replacer
}

// NewMasker returns a masker for the values of variables, by name, in two states. If a value differs between the
// states, the masker marks the second as changed.
func NewMasker(before, after map[string]string) *Masker {
	m := &Masker{whole: map[string]string{}}

	for name, value := range after {
		m.add(value, fmt.Sprintf("<masked %s, changed>", name))
	}

	for name, value := range before {
		m.add(value, fmt.Sprintf("<masked %s>", name))
	}

	for name, value := range after { // a new variable has not changed
		if other, existed := before[name]; !existed || other == value {
			m.add(value, fmt.Sprintf("<masked %s>", name))
		}
	}

	var texts []string

	for text := range m.whole {
		if len(text) >= minPart {
			texts = append(texts, text)
		}
	}

	// Longest first: a value may be a part of another one.
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })

	pairs := make([]string, 0, 2*len(texts))
	for _, text := range texts {
		pairs = append(pairs, text, m.whole[text])
	}

	m.parts = strings.NewReplacer(pairs...)

	return m
}

// add masks a value in the forms that templates and files give it. Words that switch something on or off are no
// secrets.
func (m *Masker) add(value, mask string) {
	trimmed := strings.TrimSpace(value)
	if trimmed == "" || trimmed == "true" || trimmed == "false" {
		return
	}

	for _, form := range []string{value, trimmed} {
		m.whole[form] = mask
		m.whole[base64.StdEncoding.EncodeToString([]byte(form))] = mask

		if quoted, err := json.Marshal(form); err == nil {
			m.whole[strings.Trim(string(quoted), `"`)] = mask
		}
	}

	if !strings.Contains(trimmed, "\n") {
		return
	}

	// The lines of a value may have been indented.
	for line := range strings.Lines(trimmed) {
		if line = strings.TrimSpace(line); len(line) >= minLine {
			m.whole[line] = mask
		}
	}
}

// Objects returns copies of objects without the values. Those in Secrets stay for Compare, which masks all of them and
// tells which differ.
func (m *Masker) Objects(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	masked := make([]*unstructured.Unstructured, 0, len(objects))

	for _, o := range objects {
		content := m.mask(o.Object).(map[string]any)

		for _, field := range secretFields {
			if values, exists := o.Object[field]; exists && isSecret(o) {
				content[field] = values
			}
		}

		masked = append(masked, &unstructured.Unstructured{Object: content})
	}

	return masked
}

// Text returns a text without the values.
func (m *Masker) Text(text string) string {
	if mask, isWhole := m.whole[text]; isWhole {
		return mask
	}

	return m.parts.Replace(text)
}

func (m *Masker) mask(value any) any {
	switch value := value.(type) {
	case map[string]any:
		masked := make(map[string]any, len(value))
		for key, child := range value {
			masked[m.parts.Replace(key)] = m.mask(child)
		}

		return masked
	case []any:
		masked := make([]any, 0, len(value))
		for _, child := range value {
			masked = append(masked, m.mask(child))
		}

		return masked
	case string:
		return m.Text(value)
	case nil, bool:
		return value
	case float64:
		return m.number(value, strconv.FormatFloat(value, 'f', -1, 64))
	default:
		return m.number(value, fmt.Sprint(value))
	}
}

// number masks a number, which can be a password without quotes.
func (m *Masker) number(value any, text string) any {
	if mask, found := m.whole[text]; found && len(text) >= minPart {
		return mask
	}

	return value
}
