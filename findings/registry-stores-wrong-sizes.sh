#!/usr/bin/env bash
# What: the reference registry stores a manifest whose descriptors have other sizes than their blobs, which it has.
#       Clients that compare sizes cannot pull what was pushed without an error.
# With:  github.com/distribution/distribution/v3 v3.1.2, its handlers with blobs in memory.
# Guess: a push of such a manifest is refused, as one is that names a blob which is missing.
# Seen:  201 Created, and the manifest is served as it was pushed. With a missing blob, 400 Bad Request (not 404).
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat >main.go <<'GO'
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/sirupsen/logrus"
)

const mediaType = "application/vnd.oci.image.manifest.v1+json"

var server *httptest.Server

func send(method, address, contentType, body string) *http.Response {
	request, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		panic(err)
	}

	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", mediaType)

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}

	return response
}

func digest(content string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) }

// manifest returns one whose config is the blob with this content, and has this size.
func manifest(content string, size int) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.empty.v1+json",`+
		`"digest":%q,"size":%d},"layers":[]}`, mediaType, digest(content), size)
}

func push(tag, manifest string) string {
	address := server.URL + "/v2/app/manifests/" + tag

	response := send(http.MethodPut, address, mediaType, manifest)
	if response.StatusCode != http.StatusCreated {
		return response.Status
	}

	served, err := io.ReadAll(send(http.MethodGet, address, "", "").Body)
	if err != nil {
		panic(err)
	}

	return fmt.Sprintf("%s, served as pushed: %t", response.Status, string(served) == manifest)
}

func main() {
	logrus.SetOutput(io.Discard)

	storage := configuration.Storage{"inmemory": configuration.Parameters{}}
	server = httptest.NewServer(handlers.NewApp(context.Background(), &configuration.Configuration{Storage: storage}))

	upload := send(http.MethodPost, server.URL+"/v2/app/blobs/uploads/", "", "").Header.Get("Location")
	send(http.MethodPut, upload+"&digest="+digest("{}"), "application/octet-stream", "{}")

	fmt.Println("right size:", push("right", manifest("{}", 2)))
	fmt.Println("wrong size:", push("wrong", manifest("{}", 3)))
	fmt.Println("missing blob:", push("missing", manifest("no", 2)))
}
GO

export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get github.com/distribution/distribution/v3@v3.1.2 >/dev/null 2>&1

expected=$(printf '%s\n' "right size: 201 Created, served as pushed: true" \
  "wrong size: 201 Created, served as pushed: true" "missing blob: 400 Bad Request")

seen=$(go run .)
if [ "$seen" != "$expected" ]; then
  printf 'This has changed. Seen now:\n%s\n' "$seen"
  exit 1
fi

echo "still so with distribution v3.1.2"
