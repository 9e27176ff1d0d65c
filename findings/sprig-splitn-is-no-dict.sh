#!/usr/bin/env bash
# What: the maps that sprig's split and splitn return are no dictionaries for its own functions hasKey, get and keys.
# With:  github.com/Masterminds/sprig/v3 v3.3.0, the functions of Helm's templates.
# Guess: a template can ask hasKey whether a text had a second part.
# Seen:  "wrong type for value; expected map[string]interface {}; got map[string]string". An index works, and of a part
#        that does not exist it is empty text, as of one that is empty: len of the map tells them apart.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

func main() {
	for _, text := range []string{
		`{{ hasKey (splitn ":" 2 "app:v1") "_1" }}`,
		`{{ get (splitn ":" 2 "app:v1") "_1" }}`,
		`{{ keys (split ":" "app:v1") | len }}`,
		`{{ (splitn ":" 2 "app:v1")._1 }}`,
		`{{ index (splitn ":" 2 "app") "_1" }}{{ len (splitn ":" 2 "app") }}`,
	} {
		var out strings.Builder

		err := template.Must(template.New("t").Funcs(sprig.FuncMap()).Parse(text)).Execute(&out, nil)
		if err != nil {
			_, reason, _ := strings.Cut(err.Error(), "wrong type")
			out.WriteString("wrong type" + reason)
		}

		fmt.Println(out.String())
	}
}
GO

export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get github.com/Masterminds/sprig/v3@v3.3.0 >/dev/null 2>&1

wrong='wrong type for value; expected map[string]interface {}; got map[string]string'
expected=$(printf '%s\n%s\n%s\nv1\n1' "$wrong" "$wrong" "$wrong")

seen=$(go run .)
if [ "$seen" != "$expected" ]; then
  printf 'This has changed. Seen now:\n%s\n' "$seen"
  exit 1
fi

echo "still so with sprig v3.3.0"
