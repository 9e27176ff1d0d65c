package fetch

import (
	"testing"

	. "github.com/onsi/gomega"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/access"
)

// inputsOf returns the inputs of a provider.
func inputsOf(t *testing.T, r *Resolver, p v1alpha2.Provider) *inputs {
	t.Helper()

	in, err := r.newInputs(p)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return in
}

func TestCredentials(t *testing.T) {
	r := &Resolver{Readers: &access.Readers{APIReader: newReader(map[string]map[string]string{
		"basic": {
			"username": "me",
			"password": "pass",
			"ca.crt":   "CA",
			"tls.crt":  "certificate",
			"tls.key":  "key",
			"proxy":    "http://proxy",
		},
		"token":     {"token": "t", "GITHUB_TOKEN": "other"},
		"only-ca":   {"ca.crt": "CA"},
		"variables": {"GITHUB_TOKEN": "hub", "gitlab-access-token": "lab", "AWS_B64ENCODED_CREDENTIALS": "aws"},
	})}}

	var (
		gitHub = source.Server{Host: "git.example.com", TLS: true, Tokens: []string{"GITHUB_TOKEN", "github-token"}}
		gitLab = source.Server{
			Host: "lab.example.com", TLS: true, Tokens: []string{"GITLAB_ACCESS_TOKEN", "gitlab-access-token"},
		}
		mirror = source.Server{Host: "mirror.example.com", TLS: true}
		plain  = source.Server{Host: "git.example.com", Tokens: []string{"GITHUB_TOKEN"}}
	)

	fallback := func(source.Server) string { return "fallback" }

	for name, c := range map[string]struct {
		secretRef string
		variables string
		server    source.Server
		fallback  func(source.Server) string
		want      auth.Credential
	}{
		"login and certificates": {
			"basic", "variables", gitHub, fallback, auth.Credential{Username: "me", Password: "pass"},
		},
		"a token":                     {"token", "", mirror, fallback, auth.Credential{AccessToken: "t"}},
		"a variable for GitHub":       {"", "variables", gitHub, fallback, auth.Credential{AccessToken: "hub"}},
		"a variable for GitLab":       {"", "variables", gitLab, fallback, auth.Credential{AccessToken: "lab"}},
		"no variable for others":      {"", "variables", mirror, nil, auth.EmptyCredential},
		"variables that do not exist": {"", "absent", gitHub, fallback, auth.Credential{AccessToken: "fallback"}},
		"none but the fallback":       {"", "", mirror, fallback, auth.Credential{AccessToken: "fallback"}},
		"a certificate and a variable": {
			"only-ca", "variables", gitHub, fallback, auth.Credential{AccessToken: "hub"},
		},
		"a certificate and no fallback": {
			"only-ca", "", gitHub, fallback, auth.EmptyCredential,
		},
		"a variable without TLS":              {"", "variables", plain, fallback, auth.EmptyCredential},
		"the fallback without TLS":            {"", "", plain, fallback, auth.EmptyCredential},
		"a certificate without TLS":           {"only-ca", "", plain, fallback, auth.EmptyCredential},
		"a token by the name of the variable": {"variables", "", gitLab, fallback, auth.Credential{AccessToken: "lab"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			spec := v1alpha2.ProviderSpec{SecretName: c.variables}
			if c.secretRef != "" {
				spec.FetchConfig = &v1alpha2.FetchConfiguration{
					SecretRef: &v1alpha2.LocalSecretReference{Name: c.secretRef},
				}
			}

			options, err := inputsOf(t, r, provider("x", spec)).webOptions(c.fallback)(t.Context(), c.server)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(options.Login(t.Context(), c.server.Host)).To(Equal(c.want))
		})
	}

	t.Run("a login without TLS", func(t *testing.T) {
		p := provider("x", fetching(v1alpha2.FetchConfiguration{SecretRef: &v1alpha2.LocalSecretReference{Name: "basic"}}))
		options, err := inputsOf(t, r, p).webOptions(nil)(t.Context(), plain)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		_, err = options.Login(t.Context(), plain.Host)
		NewWithT(t).Expect(err).To(MatchError(
			"credentials are not sent to git.example.com over plain HTTP; use https, or remove them"))
	})

	t.Run("a Secret that does not exist", func(t *testing.T) {
		g := NewWithT(t)
		absent := provider("x", fetching(v1alpha2.FetchConfiguration{
			SecretRef: &v1alpha2.LocalSecretReference{Name: "absent"},
		}))
		_, err := inputsOf(t, r, absent).webOptions(nil)(t.Context(), gitHub)
		g.Expect(err).To(HaveField("Reason", v1alpha2.SecretNotFoundReason))
		g.Expect(err).To(MatchError("Secret default/absent with the source's credentials does not exist; " +
			"create it, or correct spec.fetchConfig.secretRef"))
	})
}
