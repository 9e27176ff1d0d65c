package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

var errDockerConfig = errors.New(
	"not a docker configuration as `kubectl create secret docker-registry` writes it; its content is not shown here",
)

// dockerLogin is an entry of a docker configuration. As for the images of pods, its host may have wildcards, and its
// path is the beginning of the repositories that it is for.
type dockerLogin struct {
	host, path string
	credential auth.Credential
}

// parseDockerConfig reads the content of a docker configuration file. Errors never contain any of it.
func parseDockerConfig(data []byte) (Credentials, error) {
	var file struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}

	if json.Unmarshal(data, &file) != nil {
		return nil, errDockerConfig
	}

	logins := make([]dockerLogin, 0, len(file.Auths))

	for key, entry := range file.Auths {
		login, err := newDockerLogin(key, entry)
		if err != nil {
			return nil, err
		}

		logins = append(logins, login)
	}

	slices.SortFunc(logins, mostSpecific)

	return func(ctx context.Context, host string) (auth.Credential, error) {
		repository := requestedRepository(ctx, host)

		i := slices.IndexFunc(logins, func(l dockerLogin) bool { return l.isFor(host, repository) })
		if i < 0 {
			return auth.EmptyCredential, nil
		}

		return logins[i].credential, nil
	}, nil
}

// newDockerLogin reads one entry, whose key can have a scheme and the version of an API, as docker writes them.
func newDockerLogin(key string, entry json.RawMessage) (dockerLogin, error) {
	const only = "only"

	// The library keeps one entry of a host, whatever their paths are, and does not find Docker Hub's.
	content, err := json.Marshal(map[string]any{"auths": map[string]any{only: entry}})
	if err != nil {
		return dockerLogin{}, errDockerConfig
	}

	store, err := credentials.NewMemoryStoreFromDockerConfig(content)
	if err != nil { // it may quote the content
		return dockerLogin{}, errDockerConfig
	}

	credential, err := store.Get(context.Background(), only)
	address := strings.TrimPrefix(strings.TrimPrefix(key, "http://"), "https://")
	host, repositories, _ := strings.Cut(address, "/")

	switch repositories = strings.Trim(repositories, "/"); repositories {
	case "v1", "v2":
		repositories = ""
	default:
		repositories = strings.TrimPrefix(strings.TrimPrefix(repositories, "v1/"), "v2/")
	}

	return dockerLogin{host: registryName(host), path: repositories, credential: credential}, err
}

// mostSpecific compares entries: those with longer paths come first, then those without wildcards.
func mostSpecific(a, b dockerLogin) int {
	return cmp.Or(cmp.Compare(len(b.path), len(a.path)),
		cmp.Compare(strings.Count(a.host, "*"), strings.Count(b.host, "*")), cmp.Compare(b.host, a.host))
}

// isFor reports whether an entry is for a repository of a host; empty for what is no repository.
func (l dockerLogin) isFor(host, repository string) bool {
	labels, pattern := strings.Split(registryName(host), "."), strings.Split(l.host, ".")
	if len(labels) != len(pattern) || !strings.HasPrefix(repository, l.path) {
		return false
	}

	for i := range labels {
		if matches, err := path.Match(pattern[i], labels[i]); err != nil || !matches {
			return false
		}
	}

	return true
}

// registryName returns the name of a registry that has several: Docker Hub's.
func registryName(host string) string {
	switch host {
	case "index.docker.io", "registry-1.docker.io":
		return "docker.io"
	default:
		return host
	}
}

// requestedRepository returns the repository that a request is about; empty if it is about none.
func requestedRepository(ctx context.Context, host string) string {
	for _, scope := range auth.GetAllScopesForHost(ctx, host) {
		if resource, isRepository := strings.CutPrefix(scope, "repository:"); isRepository {
			return resource[:max(strings.LastIndex(resource, ":"), 0)]
		}
	}

	return ""
}
