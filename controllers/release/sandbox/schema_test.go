package sandbox

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheckReferences(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		ok     bool
	}{
		"no schema": {``, true},
		"internal": {
			`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/definitions/a"}}}`,
			true,
		},
		"web":                          {`{"properties": {"a": {"$ref": "https://example.org/a.json"}}}`, false},
		"file":                         {`{"allOf": [{"$ref": "file:///etc/passwd"}]}`, false},
		"relative":                     {`{"allOf": [{"$ref": "other.json"}]}`, false},
		"invalid JSON":                 {`{`, false},
		"a dynamic reference":          {`{"properties": {"a": {"$dynamicRef": "https://example.org/a.json"}}}`, false},
		"a recursive reference":        {`{"$recursiveRef": "https://example.org/a.json"}`, false},
		"an unknown meta-schema":       {`{"$schema": "http://169.254.169.254/latest"}`, false},
		"a meta-schema in a subschema": {`{"$defs": {"a": {"$id": "b", "$schema": "file:///etc/passwd"}}}`, false},
		"a file as the meta-schema":    {`{"$schema": "/etc/passwd"}`, false},
		"a local dynamic reference":    {`{"$dynamicRef": "#a"}`, true},
		"draft 2020-12":                {`{"$schema": "https://json-schema.org/draft/2020-12/schema"}`, true},
		"draft 7 by HTTPS":             {`{"$schema": "https://json-schema.org/draft-07/schema#"}`, true},
		"properties with these names":  {`{"properties": {"$ref": {"type": "string"}, "$schema": {}}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(checkReferences([]byte(tt.schema)) == nil).To(Equal(tt.ok))
		})
	}
}
