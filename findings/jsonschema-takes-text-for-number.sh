#!/usr/bin/env bash
# What: a validator of JSON schemas takes the text "0" for the number 0 in const and enum, up to a patch release.
# With:  github.com/santhosh-tekuri/jsonschema/v6 v6.0.2 (Helm 3.21) and v6.0.3 (Helm 3.22 and 4.3).
# Guess: a chart whose values.schema.json has {"const": "0"} refuses `--set port=0`, which Helm makes a number, in
#        every version; and {"enum": ["0", 0]} is a schema that accepts both.
# Seen:  v6.0.2 accepts the number, and refuses the enum, whose "items at 0 and 1 are equal"; v6.0.3 refuses the number
#        and accepts the enum. {"anyOf": [{"const": "0"}, {"const": 0}]} accepts both with both.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	for _, text := range []string{`{"const": "0"}`, `{"enum": ["0", 0]}`, `{"anyOf": [{"const": "0"}, {"const": 0}]}`} {
		draft := `{"$schema": "http://json-schema.org/draft-07/schema#", ` + text[1:]

		document, err := jsonschema.UnmarshalJSON(strings.NewReader(draft))
		if err != nil {
			panic(err)
		}

		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("s.json", document); err != nil {
			panic(err)
		}

		schema, err := compiler.Compile("s.json")
		if err != nil {
			fmt.Println("no schema")
			continue
		}

		fmt.Println(schema.Validate("0") == nil, schema.Validate(0) == nil)
	}
}
GO

export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1

expect() {
  local seen
  seen=$(go run . | paste -sd,)

  if [ "$seen" != "$1" ]; then
    printf 'This has changed. Seen now:\n%s\n' "$seen"
    exit 1
  fi
}

go get github.com/santhosh-tekuri/jsonschema/v6@v6.0.2 >/dev/null 2>&1
expect 'true true,no schema,true true'

go get github.com/santhosh-tekuri/jsonschema/v6@v6.0.3 >/dev/null 2>&1
expect 'true false,true true,true true'

echo "still so with jsonschema v6.0.2 and v6.0.3"
