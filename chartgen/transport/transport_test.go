package transport

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestInvalidSecrets(t *testing.T) {
	const secret = "hush"

	for name, test := range map[string]struct {
		options Options
		message string
	}{
		"a CA that is not PEM":        {Options{CA: []byte(secret)}, "ca.crt"},
		"a certificate without a key": {Options{Certificate: []byte(secret)}, "tls.crt and tls.key"},
		"a key without a certificate": {Options{Key: []byte(secret)}, "tls.crt and tls.key"},
		"a proxy without a scheme":    {Options{Proxy: secret + ":3128"}, "URL of a proxy"},
		"a proxy with another scheme": {Options{Proxy: "ftp://" + secret + "@proxy"}, "URL of a proxy"},
		"a proxy without a host":      {Options{Proxy: "http://me:" + secret + "@"}, "URL of a proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewHTTP(test.options)
			NewWithT(t).Expect(Is(err, Refused)).To(BeTrue())
			NewWithT(t).Expect(err).
				To(MatchError(And(HavePrefix("the source's Secret: "), ContainSubstring(test.message),
					Not(ContainSubstring(secret)))))
		})
	}
}
