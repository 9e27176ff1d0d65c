#!/usr/bin/env bash
# What: a memory store that is made from a docker configuration keeps its entries by host. It loses the entry of Docker
#       Hub, whose key is rewritten when the configuration is read and asked for as it was written, and of several
#       entries of one registry for different repositories it keeps a random one. The kubelet uses all of them.
# With:  oras.land/oras-go/v2 v2.6.4, credentials.NewMemoryStoreFromDockerConfig and credentials.Credential.
# Guess: the entry that docker writes for Docker Hub is found, and an entry for a repository is one of its own.
# Seen:  Docker Hub has none; of two entries of one registry, sometimes the first is used and sometimes the second.
set -euo pipefail

folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat >main.go <<'GO'
package main

import (
	"context"
	"encoding/base64"
	"fmt"

	"oras.land/oras-go/v2/registry/remote/credentials"
)

// found reports whose entry a docker configuration has for a registry; none if it has none.
func found(registry string, keys ...string) string {
	entries := ""
	for i, key := range keys {
		if i > 0 {
			entries += ","
		}

		entries += fmt.Sprintf(`%q: {"auth": %q}`, key, base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("user-%d:secret", i))))
	}

	store, err := credentials.NewMemoryStoreFromDockerConfig([]byte(`{"auths": {` + entries + `}}`))
	if err != nil {
		return err.Error()
	}

	credential, err := credentials.Credential(store)(context.Background(), registry)
	if err != nil {
		return err.Error()
	}

	if credential.Username == "" {
		return "none"
	}

	return credential.Username
}

func main() {
	fmt.Println("Docker Hub:", found("registry-1.docker.io", "https://index.docker.io/v1/"))

	users := map[string]bool{}
	for range 200 {
		users[found("registry.example", "registry.example/one", "registry.example/two")] = true
	}

	fmt.Println("users of two paths:", len(users))
}
GO

export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get oras.land/oras-go/v2@v2.6.4 >/dev/null 2>&1

expected='Docker Hub: none
users of two paths: 2'

seen=$(go run . 2>/dev/null)
if [ "$seen" != "$expected" ]; then
  printf 'This has changed. Seen now:\n%s\n' "$seen"
  exit 1
fi

echo "still so with oras-go v2.6.4"
