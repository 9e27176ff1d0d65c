package storage

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/capstan-project/capstan/chartgen/helm"
)

// fields are the fields of an object in JSON.
type fields map[string]json.RawMessage

// unknown are the fields of a record that the types of Helm's library do not have, because a newer Helm has written
// them, by the object that has them: the record itself has no name.
type unknown map[string]fields

// extensible are the objects of a record to which a newer Helm adds fields.
var extensible = map[string]reflect.Type{
	"":      reflect.TypeFor[helm.Release](),
	"info":  reflect.TypeFor[helm.Info](),
	"chart": reflect.TypeFor[helm.Chart](),
}

// keepUnknown returns a record, as Helm stores it, with the unknown fields that it had before.
func keepUnknown(before, after []byte) ([]byte, error) {
	document, err := unpack(before)
	if err != nil {
		return nil, err
	}

	found, err := unknownIn(document)
	if err != nil || len(found) == 0 {
		return after, err
	}

	return found.addTo(after)
}

// unknownIn returns the unknown fields of a record.
func unknownIn(document []byte) (unknown, error) {
	var record fields
	if err := json.Unmarshal(document, &record); err != nil {
		return nil, err
	}

	found := unknown{}

	for name, typ := range extensible {
		object, err := record.object(name)
		if err != nil {
			return nil, err
		}

		for _, field := range reflect.VisibleFields(typ) {
			known, _, _ := strings.Cut(field.Tag.Get("json"), ",")

			maps.DeleteFunc(object, func(f string, _ json.RawMessage) bool { return strings.EqualFold(f, known) })
		}

		if len(object) > 0 {
			found[name] = object
		}
	}

	return found, nil
}

// addTo returns a record, as Helm stores it, with the fields.
func (u unknown) addTo(data []byte) ([]byte, error) {
	document, err := unpack(data)
	if err != nil {
		return nil, err
	}

	var record fields
	if err := json.Unmarshal(document, &record); err != nil {
		return nil, err
	}

	for name, more := range u {
		object, err := record.object(name)
		if err != nil {
			return nil, err
		}

		maps.Copy(object, more)

		if name == "" {
			record = object
			continue
		}

		if record[name], err = json.Marshal(object); err != nil {
			return nil, err
		}
	}

	if document, err = json.Marshal(record); err != nil {
		return nil, err
	}

	return pack(document)
}

// object returns a copy of the fields of an object of a record.
func (f fields) object(name string) (fields, error) {
	if name == "" {
		return maps.Clone(f), nil
	}

	var object fields
	if content, ok := f[name]; ok {
		if err := json.Unmarshal(content, &object); err != nil {
			return nil, err
		}
	}

	if object == nil {
		object = fields{}
	}

	return object, nil
}
