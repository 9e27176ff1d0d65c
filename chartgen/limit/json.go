package limit

// JSON counts what is written to it, so that JSON can be refused while it is read, before it is decoded. What a decoder
// builds of a value is a hundred times as large as an empty one in JSON.
type JSON struct {
	// MaxBytes, MaxValues and MaxDepth are the limits, each of them at least 1. Values are scalars, lists and maps.
	MaxBytes, MaxValues, MaxDepth int
	// Bytes and Values are what was written so far.
	Bytes, Values int

	depth         int
	text, escaped bool
}

// Write counts. The error is an *Error if a limit is exceeded.
func (j *JSON) Write(p []byte) (int, error) {
	j.Bytes += len(p)
	if j.Bytes > j.MaxBytes {
		return 0, exceeded("is larger than %d MiB", j.MaxBytes>>20)
	}

	for _, c := range p {
		switch {
		case j.escaped:
			j.escaped = false
		case j.text:
			j.escaped = c == '\\'
			j.text = c != '"'
		case c == '"':
			j.text = true
		default:
			j.count(c)
		}

		if j.Values > j.MaxValues {
			return 0, exceeded("has more than %d values", j.MaxValues)
		}

		if j.depth > j.MaxDepth {
			return 0, exceeded("has more than %d levels of lists and maps", j.MaxDepth)
		}
	}

	return len(p), nil
}

// count counts a character outside of texts.
func (j *JSON) count(c byte) {
	switch c {
	case ',':
		j.Values++
	case '{', '[':
		j.Values++
		j.depth++
	case '}', ']':
		j.depth--
	}
}
