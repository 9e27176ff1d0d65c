// Package managers holds the operator's settings for the managers of all providers: pull secrets, a proxy,
// certificate authorities and high availability.
package managers

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Flags are the values of the operator's flags for managers.
type Flags struct {
	ImagePullSecrets []string
	HTTPProxy        string
	HTTPSProxy       string
	NoProxy          string
	// CA is the path of a file.
	CA               string
	HighAvailability bool
}

// Names of flags.
const (
	CAFlag               = "manager-ca"
	HighAvailabilityFlag = "manager-high-availability"
)

// BindFlags adds the operator's flags for managers.
func (f *Flags) BindFlags(set *pflag.FlagSet) {
	set.StringSliceVar(&f.ImagePullSecrets, "manager-image-pull-secrets", nil,
		"Comma-separated Secrets with credentials for images, which must exist in the namespace of each provider.")
	set.StringVar(&f.HTTPProxy, "manager-http-proxy", "",
		"Proxy of all managers for HTTP (HTTP_PROXY), such as http://proxy.example.com:3128.")
	set.StringVar(&f.HTTPSProxy, "manager-https-proxy", "",
		"Proxy of all managers for HTTPS (HTTPS_PROXY).")
	set.StringVar(&f.NoProxy, "manager-no-proxy", "",
		"Comma-separated hosts, domains and ranges of IP addresses that managers reach without the proxy "+
			"(NO_PROXY), besides the API server and Services.")
	set.StringVar(&f.CA, CAFlag, "",
		"File with CA certificates that all managers trust, besides those of their images.")
	set.BoolVar(&f.HighAvailability, HighAvailabilityFlag, false,
		"Run two pods of each manager, so that webhooks answer while pods are replaced, evicted or deleted. "+
			"spec.deployment.highAvailability takes precedence.")
}

// maxCA is the greatest size of the CA certificates in bytes: they become part of each release.
const maxCA = 256 << 10

// Load checks the flags, reads the file, and returns the settings; nil if no flag is set.
func (f *Flags) Load(read func(path string) ([]byte, error)) (*Settings, error) {
	s := &Settings{ImagePullSecrets: f.ImagePullSecrets, HighAvailability: f.HighAvailability}

	for _, name := range f.ImagePullSecrets {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, fmt.Errorf("--manager-image-pull-secrets: %q is not the name of a Secret: %s", name, problems[0])
		}
	}

	if err := errors.Join(
		checkProxy("--manager-http-proxy", f.HTTPProxy),
		checkProxy("--manager-https-proxy", f.HTTPSProxy),
	); err != nil {
		return nil, err
	}

	s.Environment = f.environment()

	if f.CA != "" {
		data, err := read(f.CA)
		if err == nil {
			err = checkCA(f.CA, data)
		}

		if err != nil {
			return nil, fmt.Errorf("--%s: %w", CAFlag, err)
		}

		s.CA = string(data)
	}

	if len(s.ImagePullSecrets) == 0 && len(s.Environment) == 0 && s.CA == "" && !s.HighAvailability {
		return nil, nil
	}

	return s, nil
}

// checkProxy returns an error if a proxy is not a URL, or has a password: that would become part of releases and of
// Deployments, which many may read. The error does not contain the URL.
func checkProxy(flag, proxy string) error {
	if proxy == "" {
		return nil
	}

	u, err := url.Parse(proxy)

	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%s is not a URL such as http://proxy.example.com:3128", flag)
	case u.User != nil:
		return fmt.Errorf("%s holds credentials, which everyone who may read Deployments would see; use a proxy that "+
			"requires none, or set the variable of single providers from a Secret with spec.deployment.containers", flag)
	}

	return nil
}

// direct are the hosts in the cluster, which no proxy can connect to. Kubernetes replaces the reference to a variable
// by the address of the API server.
const direct = "$(KUBERNETES_SERVICE_HOST),.svc,.cluster.local,localhost,127.0.0.1"

// environment returns the variables for the proxy; none without one.
func (f *Flags) environment() []Variable {
	if f.HTTPProxy == "" && f.HTTPSProxy == "" {
		return nil
	}

	noProxy := direct
	if f.NoProxy != "" {
		noProxy = f.NoProxy + "," + direct
	}

	all := []Variable{{"HTTP_PROXY", f.HTTPProxy}, {"HTTPS_PROXY", f.HTTPSProxy}, {"NO_PROXY", noProxy}}

	return slices.DeleteFunc(all, func(v Variable) bool { return v.Value == "" })
}

// checkCA returns an error if the content of a file is anything else than certificates.
func checkCA(file string, data []byte) error {
	if len(data) > maxCA {
		return fmt.Errorf("%s has %d bytes; at most %d are possible", file, len(data), maxCA)
	}

	count := 0

	for rest := data; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}

		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("%s contains a %s; it may contain only certificates", file, strings.ToLower(block.Type))
		}

		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("%s: certificate %d: %w", file, count+1, err)
		}
	}

	if count == 0 {
		return fmt.Errorf("%s contains no certificates in PEM format", file)
	}

	return nil
}

// Settings change the pods of all providers. Nil changes nothing.
type Settings struct {
	ImagePullSecrets []string
	// Environment are variables for all containers.
	Environment []Variable
	// CA are certificates in PEM format; empty for none.
	CA string
	// HighAvailability is the default of spec.deployment.highAvailability.
	HighAvailability bool `json:",omitempty"`
}

// Variable is an environment variable.
type Variable struct{ Name, Value string }

// Digest identifies the settings; empty for none.
func (s *Settings) Digest() string {
	if s == nil {
		return ""
	}

	content, _ := json.Marshal(s) // strings can always be encoded
	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:])
}
