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
		"registry.test/team-a/app":             {[]string{"registry.test"}, "registry.test"},
		"registry.test/team-b/app":             {[]string{"https://registry.test/v2/"}, "https://registry.test/v2/"},
		"registry.test:5000/app":               {[]string{"registry.test"}, ""},
		"registry.test:5001/app":               {[]string{"registry.test:5001"}, "registry.test:5001"},
		"two.test/team-a/app":                  {[]string{"two.test/team-a", "two.test/team-b"}, "two.test/team-a"},
		"two.test/team-b/app":                  {[]string{"two.test/team-a", "two.test/team-b"}, "two.test/team-b"},
		"two.test/team-c/app":                  {[]string{"two.test/team-a", "two.test/team-b"}, ""},
		"three.test/team-a/app":                {[]string{"three.test", "three.test/team-a"}, "three.test/team-a"},
		"three.test/team-b/app":                {[]string{"three.test", "three.test/team-a"}, "three.test"},
		"eu.wild.test/app":                     {[]string{"*.wild.test"}, "*.wild.test"},
		"us.wild.test/app":                     {[]string{"*.wild.test", "us.wild.test"}, "us.wild.test"},
		"a.b.wild.test/app":                    {[]string{"*.wild.test"}, ""},
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
