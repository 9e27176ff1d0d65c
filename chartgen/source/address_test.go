package source

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/transport"
)

func TestNewWebsiteRejects(t *testing.T) {
	for address, message := range map[string]string{
		"ftp://host/file.yaml":              "must begin with https:// or http://",
		"https://":                          "must begin with https:// or http://",
		"https://me:hush@host/file.yaml":    "holds credentials, which anyone with access",
		"https://host/file.yaml?token=hush": "must end there",
		"https://host/api/v4/projects/7/packages/npm/a/v1.0.0/b": "write it as https://HOST/api/v4/projects/PROJECT/" +
			"packages/generic/PACKAGE/VERSION/FILE",
		"https://host/api/v4/projects/7/packages/generic/a/v1.0.0": "is not the address of a GitLab package",
		"https://host/%zz": "cannot be read; write it as https://host/path",
	} {
		_, err := NewWebsite(address, core, nil)
		g := NewWithT(t)
		g.Expect(transport.Is(err, transport.Refused)).To(BeTrue(), address)
		g.Expect(err).To(MatchError(And(ContainSubstring(message), Not(ContainSubstring("hush")))), address)
	}
}

func TestWebsiteOrigin(t *testing.T) {
	for _, test := range []struct {
		address string
		want    string // the URL of the components of v1.2.3
	}{
		{
			address: "https://github.com/o/r/releases/latest/core-components.yaml",
			want:    "https://github.com/o/r/releases/download/v1.2.3/core-components.yaml",
		},
		{
			address: "https://github.com/o/r",
			want:    "https://github.com/o/r/releases/download/v1.2.3/core-components.yaml",
		},
		{
			address: "https://github.com/o/r/releases/latest/download/x.yaml",
			want:    "https://github.com/o/r/releases/download/v1.2.3/x.yaml",
		},
		{
			address: "https://mirror/cache/github/o/r/releases/latest/x.yaml",
			want:    "https://mirror/cache/github/o/r/releases/download/v1.2.3/x.yaml",
		},
		{
			address: "https://host/root/api/v4/projects/7/packages/generic/p/v9.9.9/x.yaml",
			want:    "https://host/root/api/v4/projects/7/packages/generic/p/v1.2.3/x.yaml",
		},
		{address: "https://my-internal/azure/v1.9.3.yaml", want: "https://my-internal/azure/v1.2.3.yaml"},
		{address: "https://my-internal/azure/1.9.3/x.yaml", want: "https://my-internal/azure/1.2.3/x.yaml"},
		{address: "https://my-internal/azure/x.yml", want: "https://my-internal/azure/x.yml"},
		{address: "https://my-internal/azure", want: "https://my-internal/azure/v1.2.3/core-components.yaml"},
	} {
		w, err := NewWebsite(test.address, core, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), test.address)
		NewWithT(t).Expect(w.exact("v1.2.3").Origin.Place).To(Equal(test.want), test.address)
	}
}
