package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// GitHub is the server that publishes the Standard providers.
const GitHub = "https://github.com"

// published lists the files of the Standard providers' releases, and of one to upgrade to, with their names in a local
// repository.
var published = []struct{ label, version, project, file, as string }{
	{"cluster-api", "v1.13.5", "kubernetes-sigs/cluster-api", "core-components.yaml", "core-components.yaml"},
	{
		"bootstrap-kubeadm",
		"v1.13.5",
		"kubernetes-sigs/cluster-api",
		"bootstrap-components.yaml",
		"bootstrap-components.yaml",
	},
	{
		"control-plane-kubeadm",
		"v1.13.5",
		"kubernetes-sigs/cluster-api",
		"control-plane-components.yaml",
		"control-plane-components.yaml",
	},
	{
		"infrastructure-docker",
		"v1.13.5",
		"kubernetes-sigs/cluster-api",
		"infrastructure-components-development.yaml",
		"infrastructure-components.yaml",
	},
	{
		"infrastructure-docker",
		"v1.14.0",
		"kubernetes-sigs/cluster-api",
		"infrastructure-components-development.yaml",
		"infrastructure-components.yaml",
	},
	{
		"infrastructure-aws",
		"v2.11.1",
		"kubernetes-sigs/cluster-api-provider-aws",
		"infrastructure-components.yaml",
		"infrastructure-components.yaml",
	},
}

// Download fills a folder with the releases of the Standard providers, in the layout of a local
// repository. It downloads from GitHub or a server with the same paths, and gives up if the server
// does not answer within seconds.
func Download(ctx context.Context, server, folder string) error {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 10 * time.Second,
	}}

	for _, p := range published {
		target := filepath.Join(folder, p.label, p.version)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}

		for file, as := range map[string]string{p.file: p.as, "metadata.yaml": "metadata.yaml"} {
			url := fmt.Sprintf("%s/%s/releases/download/%s/%s", server, p.project, p.version, file)
			if err := download(ctx, client, url, filepath.Join(target, as)); err != nil {
				return err
			}
		}
	}

	return nil
}

func download(ctx context.Context, client *http.Client, url, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}

	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}

	const most = 32 << 20

	data, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}

	return os.WriteFile(file, data, 0o600)
}
