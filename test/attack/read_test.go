package attack

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// readAttempts read what the tenant may not read.
var readAttempts = []attempt{
	{"The Secret of another namespace as variables, copied into the tenant's ConfigMap", func(a *arena) string {
		a.jewel()

		return a.attempted(a.stealing(), a.stolen().configMap())
	}},
	{"A ConfigMap of another namespace as additional manifests", func(a *arena) string {
		a.jewel()
		p := a.small("").by("installer")
		p.Spec.AdditionalManifests = &v1alpha2.ConfigMapReference{Namespace: victim, Name: a.name}

		return a.attempted(p, a.small("").configMap())
	}},
	{"GITHUB_TOKEN in another namespace's Secret, sent to the tenant's server", func(a *arena) string {
		a.neverReceived("the victim's token", a.jewel("GITHUB_TOKEN"))

		trust := a.trust(nil)
		p := a.small("").from(v1alpha2.FetchConfiguration{
			URL:       a.server(releases(a.small(""))) + "/o/p/releases/v1.0.0/infrastructure-components.yaml",
			SecretRef: secretOf(trust),
		})
		p.Spec.ConfigSecret = &v1alpha2.SecretReference{Namespace: victim, Name: a.name}

		return a.attempted(p, trust)
	}},
	{"The operator's file system as the folder of a source", func(a *arena) string {
		folder := filepath.Join(a.TempDir(), "var/run/secrets")
		jewel := "token-of-" + a.name + "-end"
		a.Expect(os.MkdirAll(filepath.Join(folder, "v1.0.0"), 0o755)).To(Succeed())

		for _, file := range []string{"token", "v1.0.0/metadata.yaml", "v1.0.0/infrastructure-components.yaml"} {
			a.Expect(os.WriteFile(filepath.Join(folder, file), []byte(jewel), 0o600)).To(Succeed())
		}

		a.neverKnown(jewel)

		return a.attempted(a.small("").from(v1alpha2.FetchConfiguration{Directory: folder}))
	}},
	{"A version with ../ in it", func(a *arena) string {
		p := a.small("").by("installer")
		p.Spec.Version = "../../../../etc"
		err := a.tenant.Create(a.ctx, p)
		a.Expect(err).To(HaveOccurred())

		return err.Error()
	}},
}

// stolen returns a provider whose ConfigMap has the value of the variable "value".
func (a *arena) stolen() small {
	return a.small("---\n" + strings.Replace(note("stolen-"+a.name, a.name+"-system", "x"), `"x"`, `"${value}"`, 1))
}

// stealing returns the resource of stolen, with variables from the victim's Secret.
func (a *arena) stealing() *v1alpha2.InfrastructureProvider {
	p := a.stolen().by("installer")
	p.Spec.ConfigSecret = &v1alpha2.SecretReference{Namespace: victim, Name: a.name}

	return p
}
