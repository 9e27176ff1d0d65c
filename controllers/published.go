package controllers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/catalog"
)

// LeaseName is the name of the Lease that the operator holds while it runs.
const LeaseName = "capstan.operator.cluster.x-k8s.io"

// PublishedName is the name of the ConfigMap in the operator's namespace with the published configuration.
const PublishedName = "capstan-configuration"

// The keys of the ConfigMap.
const (
	publishedVersion     = "version"
	publishedChartFormat = "chartFormat"
	publishedFlags       = "flags"
	publishedFiles       = "files"
)

// maxFiles limits the size of the files that are published: a ConfigMap may have 1 MiB.
const maxFiles = 900 << 10

// Published is the operator's configuration as the operator publishes it, so that the command line predicts its
// actions.
type Published struct {
	// Version of the operator, and the version of the format in which it builds charts.
	Version, ChartFormat string
	// Flags are the values of all flags of its Config, by their names.
	Flags map[string]string
	// Files are the contents of the files that flags name, by their paths: of certificates, public keys, and the lists
	// of providers and images in the configuration. Those that cannot be read are missing.
	Files map[string]string
}

// ReadPublished returns the configuration that the operator in a namespace has published; nil if there is none.
func ReadPublished(ctx context.Context, c client.Reader, namespace string) (*Published, error) {
	configMap := &corev1.ConfigMap{}

	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: PublishedName}, configMap)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read the operator's configuration: %w", err)
	}

	// The chart creates it without content.
	if configMap.Data[publishedFlags] == "" {
		return nil, nil
	}

	p := &Published{Version: configMap.Data[publishedVersion], ChartFormat: configMap.Data[publishedChartFormat]}
	if err := errors.Join(
		yaml.Unmarshal([]byte(configMap.Data[publishedFlags]), &p.Flags),
		yaml.Unmarshal([]byte(configMap.Data[publishedFiles]), &p.Files),
	); err != nil {
		return nil, fmt.Errorf("read the operator's configuration: ConfigMap %s/%s: %w", namespace, PublishedName, err)
	}

	return p, nil
}

// publishInterval is how often the files are read, and how long a failed publication is waited for.
const publishInterval = time.Minute

// Publisher publishes the operator's configuration once the operator is the leader.
type Publisher struct {
	// Client must read ConfigMaps from the API server, not from a cache.
	Client    client.Client
	Namespace string
	Version   string
	Config    *Config

	// published is what was published last.
	published map[string]string
}

// Start publishes the configuration, and again when a file changes.
func (p *Publisher) Start(ctx context.Context) error {
	publish := func(ctx context.Context) (bool, error) {
		if err := p.Publish(ctx); err != nil {
			ctrl.Log.Error(err, "unable to publish the configuration; the command line will not know it",
				"configMap", p.Namespace+"/"+PublishedName)
		}

		return false, nil
	}

	_ = wait.PollUntilContextCancel(ctx, publishInterval, true, publish) // it ends with the operator

	return nil
}

// Publish publishes the configuration. It sends no request if this publisher has published the same before.
func (p *Publisher) Publish(ctx context.Context) error {
	data, err := p.data()
	if err != nil || maps.Equal(data, p.published) {
		return err
	}

	live := &corev1.ConfigMap{}

	err = p.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: PublishedName}, live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}

	// A restart usually changes nothing.
	if err != nil || !maps.Equal(live.Data, data) {
		configMap := applycorev1.ConfigMap(PublishedName, p.Namespace).WithData(data)
		if err := p.Client.Apply(ctx, configMap, client.FieldOwner(v1alpha2.FieldOwner), client.ForceOwnership); err != nil {
			return err
		}
	}

	p.published = data

	return nil
}

// data returns the content of the ConfigMap.
func (p *Publisher) data() (map[string]string, error) {
	flags, err := yaml.Marshal(p.Config.Values())
	if err != nil {
		return nil, err
	}

	files, err := yaml.Marshal(p.Config.publicFiles())

	return map[string]string{
		publishedVersion:     p.Version,
		publishedChartFormat: chartgen.Version,
		publishedFlags:       string(flags),
		publishedFiles:       string(files),
	}, err
}

// publicFiles returns the contents of the files that flags name, by their paths, without what may be secret: private
// keys, and variables of the configuration. What cannot be read is left out; Load has reported it.
func (c *Config) publicFiles() map[string]string {
	files, size := map[string]string{}, 0

	for _, f := range c.Files() {
		data, err := os.ReadFile(*f.Path)
		if err == nil && f.Name == configFlag {
			data, err = catalog.Public(data)
		}

		if err != nil || size+len(data) > maxFiles || bytes.Contains(data, []byte("PRIVATE KEY")) {
			continue
		}

		size += len(data)
		files[*f.Path] = string(data)
	}

	return files
}
