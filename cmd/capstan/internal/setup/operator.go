package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/charts"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/fetch"
)

// The operator's release, the objects that its pods mount, and their keys.
const (
	operatorName      = "capstan"
	operatorNamespace = "capstan-system"

	configName = "capstan-config"
	configKey  = "clusterctl.yaml"

	registryName      = "capstan-registry"
	registryConfigKey = "config.json"
	registryCAKey     = "ca.crt"
)

// operator is the operator's release together with what its pods mount.
type operator struct {
	chartRelease

	// config is its configuration in clusterctl's format; empty for clusterctl's built-in list.
	config []byte
	// mounted are a ConfigMap with the configuration and a Secret with access to registries, if needed.
	mounted []client.Object
}

// planOperator returns the operator to install, and what that is, or why there is nothing to install. The version is
// that of the command line.
func (o *options) planOperator(ctx context.Context, cluster *cli.Cluster) (*operator, string, error) {
	op := &operator{chartRelease: chartRelease{
		name: operatorName, namespace: cmp.Or(o.planner.OperatorNamespace, operatorNamespace),
	}}

	last, err := op.last(o.cluster.Getter())
	if err != nil {
		return nil, "", err
	}

	found, err := cli.FindOperator(ctx, cluster.Client, "")
	missing := new(cli.OperatorError)

	switch {
	case last != nil && last.Info.Status == helmrelease.StatusFailed:
	case err == nil:
		return nil, fmt.Sprintf("Deployment %s/%s exists", found.Namespace, found.Name), nil
	case !errors.As(err, &missing):
		return nil, "", err
	case len(missing.Deployments) > 0:
		return nil, err.Error(), nil
	}

	if op.chart, err = charts.Operator(); err != nil {
		return nil, "", err
	}

	op.setVersion(o.Version)

	if err := op.readConfig(o.planner.Config.Options.ConfigFile); err != nil {
		return nil, "", err
	}

	given, err := readValues("--operator-values", o.operatorValues)
	if err != nil {
		return nil, "", err
	}

	return op, fmt.Sprintf("%s (included in capstan)", op), op.setValues(given, o.planner.Config)
}

// setVersion makes the chart that of a release, unless the command line is a build without a version.
func (op *operator) setVersion(version string) {
	if ranges.IsExact(version) {
		op.chart.Metadata.Version = strings.TrimPrefix(version, "v")
		op.chart.Metadata.AppVersion = version
	}
}

// readConfig reads those parts of a configuration of clusterctl, empty for the user's own, that are about where
// providers and images are. The rest are the user's variables and local folders.
func (op *operator) readConfig(file string) error {
	if file = cmp.Or(file, catalog.UserFile()); file == "" {
		return nil
	}

	// This checks the whole file, too. Its errors hold no values.
	if _, err := catalog.Load(file); err != nil {
		return err
	}

	data, err := cli.ReadFile(file)
	if err != nil {
		return err
	}

	if op.config, err = catalog.Public(data); err != nil {
		return fmt.Errorf("configuration file %s: %w", file, err)
	}

	return nil
}

// settings returns the settings that the operator will have.
func (op *operator) settings() (*cli.OperatorConfig, error) {
	values := chartutil.CoalesceTables(maps.Clone(op.values), op.chart.Values)
	flags, _ := values["flags"].(map[string]any)
	text := map[string]string{}

	for name, value := range flags {
		text[name] = fmt.Sprint(value)
	}

	config := &cli.OperatorConfig{Contents: map[string]string{fetch.DefaultConfigFile: string(op.config)}}

	// The flags about other things than what the operator installs are not known here.
	_, err := config.Set(text)

	return config, err
}

// setValues sets the values of the chart: those given by the user, then those that follow from flags.
func (op *operator) setValues(given map[string]any, config controllers.Config) error {
	flags := map[string]any{}
	own := map[string]any{"flags": flags}

	var volumes, mounts []any

	mount := func(name, path, kind, nameKey string) {
		volumes = append(volumes, map[string]any{"name": name, kind: map[string]any{nameKey: name}})
		mounts = append(mounts, map[string]any{"name": name, "mountPath": path, "readOnly": true})
	}

	if len(op.config) > 0 {
		op.mounted = append(op.mounted, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: configName},
			Data:       map[string]string{configKey: string(op.config)},
		})

		mount(configName, "/config", "configMap", "name")
	}

	access := map[string][]byte{}

	for _, f := range []struct{ flag, file, key string }{
		{"registry-config", config.RegistryConfig, registryConfigKey},
		{"registry-ca", config.RegistryCA, registryCAKey},
	} {
		if f.file == "" {
			continue
		}

		data, err := cli.ReadFile(f.file)
		if err != nil {
			return fmt.Errorf("--%s: %w", f.flag, err)
		}

		access[f.key] = data
		flags[f.flag] = "/registry/" + f.key
	}

	if len(access) > 0 {
		op.mounted = append(op.mounted, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: op.namespace, Name: registryName},
			Data:       access,
		})

		mount(registryName, "/registry", "secret", "secretName")
	}

	if config.ChartRepository != "" {
		flags["chart-repository"] = config.ChartRepository
	}

	if config.Options.ImageRegistry != "" {
		flags["image-registry"] = config.Options.ImageRegistry
		own["image"] = map[string]any{"repository": op.mirroredImage(config.Options.ImageRegistry)}
	}

	for name, list := range map[string][]any{"volumes": volumes, "volumeMounts": mounts} {
		users, _ := given[name].([]any)
		given[name] = append(list, users...)
	}

	op.values = chartutil.CoalesceTables(given, own)

	return nil
}

// mirroredImage returns the repository of the operator's image in a registry, as host[:port][/path], that has images
// in the repositories of the registry that they are copied from.
func (op *operator) mirroredImage(registry string) string {
	image, _ := op.chart.Values["image"].(map[string]any)
	public, _ := image["repository"].(string)
	_, repository, _ := strings.Cut(public, "/")

	return registry + "/" + repository
}
