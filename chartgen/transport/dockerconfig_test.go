package transport

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// TestDockerConfig compares which entry of a docker configuration is used with what the kubelet does.
func TestDockerConfig(t *testing.T) {
	for reference, test := range map[string]struct {
		keys []string
		want string
	}{
		"registry.example.com/team-a/app":      {[]string{"registry.example.com"}, "registry.example.com"},
		"registry.example.com/team-b/app":      {[]string{"https://registry.example.com/v2/"}, "https://registry.example.com/v2/"},
		"registry.example.com:5000/app":        {[]string{"registry.example.com"}, ""},
		"registry.example.com:5001/app":        {[]string{"registry.example.com:5001"}, "registry.example.com:5001"},
		"two.example.com/team-a/app":           {[]string{"two.example.com/team-a", "two.example.com/team-b"}, "two.example.com/team-a"},
		"two.example.com/team-b/app":           {[]string{"two.example.com/team-a", "two.example.com/team-b"}, "two.example.com/team-b"},
		"two.example.com/team-c/app":           {[]string{"two.example.com/team-a", "two.example.com/team-b"}, ""},
		"three.example.com/team-a/app":         {[]string{"three.example.com", "three.example.com/team-a"}, "three.example.com/team-a"},
		"three.example.com/team-b/app":         {[]string{"three.example.com", "three.example.com/team-a"}, "three.example.com"},
		"eu.wild.example.com/app":              {[]string{"*.wild.example.com"}, "*.wild.example.com"},
		"us.wild.example.com/app":              {[]string{"*.wild.example.com", "us.wild.example.com"}, "us.wild.example.com"},
		"a.b.wild.example.com/app":             {[]string{"*.wild.example.com"}, ""},
		"docker.io/library/app":                {[]string{"https://index.docker.io/v1/"}, "https://index.docker.io/v1/"},
		"docker.io/company/app":                {[]string{"docker.io"}, "docker.io"},
		"docker.io/company/app-of-another-key": {[]string{"registry-1.docker.io"}, "registry-1.docker.io"},
	} {
		t.Run(reference, func(t *testing.T) {
			g := NewWithT(t)

			var auths []string

			for _, key := range test.keys {
				login := base64.StdEncoding.EncodeToString([]byte(key[strings.LastIndex(key, ":")+1:] + ":pw"))
				auths = append(auths, fmt.Sprintf(`%q: {"auth": %q, "username": %q, "password": "pw"}`, key, login, key))
			}

			for range 10 { // the order of a map differs
				found, err := parseDockerConfig([]byte(`{"auths": {` + strings.Join(auths, ",") + `}}`))
				g.Expect(err).NotTo(HaveOccurred())

				name, err := registry.ParseReference(reference)
				g.Expect(err).NotTo(HaveOccurred())

				login, err := found(auth.AppendRepositoryScope(t.Context(), name, auth.ActionPull), name.Host())
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(login.Username).To(Equal(test.want[strings.LastIndex(test.want, ":")+1:]))
			}
		})
	}
}
