package clusters

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/usage"
	"github.com/capstan-project/capstan/ui"
)

// syncTimeout limits the first read of all providers.
const syncTimeout = time.Minute

// watch returns a view of the cluster whose provider resources are in a cache, and makes the feed report their changes
// until the context ends.
func watch(ctx context.Context, cluster *cli.Cluster, feed *ui.Feed) (*ui.Cluster, error) {
	cli.SilenceLibraries() // the pages show problems

	config := rest.CopyConfig(cluster.Config)
	config.Timeout = 0 // a watch has no end

	options := cache.Options{
		Scheme:           cluster.Client.Scheme(),
		Mapper:           cluster.Client.RESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		// The page shows that the cluster does not answer: see check.
		DefaultWatchErrorHandler: func(context.Context, *toolscache.Reflector, error) {},
	}
	if cluster.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{cluster.Namespace: {}}
	}

	providers, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("watch the providers: %w", err)
	}

	// It ends with the context.
	go func() { _ = providers.Start(ctx) }()

	syncing, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()

	if err := ui.Watch(syncing, providers, feed); err != nil {
		return nil, err
	}

	if !providers.WaitForCacheSync(syncing) {
		return nil, fmt.Errorf("the providers could not be read within %s: may you list and watch them?", syncTimeout)
	}

	go feed.Check(ctx, cluster.Client, cluster.Namespace)

	objects, err := metadata.NewForConfig(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the management cluster: %w", err)
	}

	reader := cluster.Facts()
	reader.Finder = &usage.Finder{Client: cluster.Client, Metadata: objects}

	return &ui.Cluster{Reader: reader, Cache: providers}, nil
}
