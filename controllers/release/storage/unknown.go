package storage

import (
	"encoding/json"
	"strings"
)

// fields are the fields of an object in JSON.
type fields map[string]json.RawMessage

// keepUnknown returns a record, as Helm stores it, with the fields that it had before and has lost: a newer Helm has
// written them, and the types of Helm's library do not have them. Nothing else of a record is ever emptied.
func keepUnknown(before, after []byte) ([]byte, error) {
	former, err := unpackFields(before)
	if err != nil {
		return nil, err
	}

	record, err := unpackFields(after)
	if err != nil {
		return nil, err
	}

	lost := record.restore(former)

	for _, name := range []string{"info", "chart"} {
		lostInside, err := record.restoreInside(name, former[name])
		if err != nil {
			return nil, err
		}

		lost = lost || lostInside
	}

	if !lost {
		return after, nil
	}

	document, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}

	return pack(document)
}

func unpackFields(data []byte) (fields, error) {
	document, err := unpack(data)
	if err != nil {
		return nil, err
	}

	var record fields
	if err := json.Unmarshal(document, &record); err != nil {
		return nil, err
	}

	return record, nil
}

// restore adds fields that are missing, and reports whether there are any. Another spelling of one that exists is not
// missing: JSON is decoded without regard to case.
func (f fields) restore(former fields) (lost bool) {
	for name, value := range former {
		if !f.has(name) {
			f[name], lost = value, true
		}
	}

	return lost
}

func (f fields) has(name string) bool {
	for known := range f {
		if strings.EqualFold(known, name) {
			return true
		}
	}

	return false
}

// restoreInside is restore for an object in a field.
func (f fields) restoreInside(name string, former json.RawMessage) (lost bool, err error) {
	if former == nil || f[name] == nil {
		return false, nil
	}

	var before, object fields

	if err := json.Unmarshal(former, &before); err != nil {
		return false, err
	}

	if err := json.Unmarshal(f[name], &object); err != nil {
		return false, err
	}

	if object == nil || !object.restore(before) {
		return false, nil
	}

	f[name], err = json.Marshal(object)

	return true, err
}
