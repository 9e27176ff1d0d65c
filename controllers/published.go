package controllers

import (
	"context"
	"fmt"
	"maps"
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
)

// PublishedName is the name of the ConfigMap, in the operator's namespace, in which the operator publishes what it is.
const PublishedName = "capstan-configuration"

// The keys of the ConfigMap.
const (
	publishedVersion     = "version"
	publishedChartFormat = "chartFormat"
	publishedFlags       = "flags"
)

// Published is what the operator publishes about itself, so that the command line computes what it would do.
type Published struct {
	// Version of the operator, and the version of the format in which it builds charts.
	Version, ChartFormat string
	// Flags are the values of all flags of its Config, by their names.
	Flags map[string]string
}

// ReadPublished returns what the operator in a namespace has published; nil if it has published nothing.
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
	if err := yaml.Unmarshal([]byte(configMap.Data[publishedFlags]), &p.Flags); err != nil {
		return nil, fmt.Errorf("read the operator's configuration: ConfigMap %s/%s: %w", namespace, PublishedName, err)
	}

	return p, nil
}

// publishRetry is how long a failed publication is waited for.
const publishRetry = time.Minute

// Publisher publishes the operator's configuration once the operator is the leader.
type Publisher struct {
	// Client must read ConfigMaps from the API server, not from a cache.
	Client    client.Client
	Namespace string
	Version   string
	Config    *Config
}

// Start publishes the configuration, and repeats that until it succeeds.
func (p *Publisher) Start(ctx context.Context) error {
	publish := func(ctx context.Context) (bool, error) {
		err := p.Publish(ctx)
		if err != nil {
			ctrl.Log.Error(err, "unable to publish the configuration; the command line will not know it",
				"configMap", p.Namespace+"/"+PublishedName)
		}

		return err == nil, nil
	}

	_ = wait.PollUntilContextCancel(ctx, publishRetry, true, publish) // it ends with the operator at the latest

	return nil
}

// Publish publishes the configuration.
func (p *Publisher) Publish(ctx context.Context) error {
	flags, err := yaml.Marshal(p.Config.Values())
	if err != nil {
		return err
	}

	data := map[string]string{
		publishedVersion:     p.Version,
		publishedChartFormat: chartgen.Version,
		publishedFlags:       string(flags),
	}

	// A restart usually changes nothing.
	published := &corev1.ConfigMap{}

	err = p.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: PublishedName}, published)
	if err == nil && maps.Equal(published.Data, data) || client.IgnoreNotFound(err) != nil {
		return err
	}

	configMap := applycorev1.ConfigMap(PublishedName, p.Namespace).WithData(data)

	return p.Client.Apply(ctx, configMap, client.FieldOwner(v1alpha2.FieldOwner), client.ForceOwnership)
}
