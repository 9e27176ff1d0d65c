// Package operatorconfig reads how the operator in a cluster is configured, so that the command
// line computes what that operator would install.
package operatorconfig

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/managers"
	"github.com/capstan-project/capstan/controllers/watch"
)

// Config has those settings of the operator that decide what it installs. Each is the value of the
// operator's flag of the same name; files are local paths.
type Config struct {
	ImageRegistry   string
	ChartRepository string
	RegistryConfig  string
	RegistryCA      string
	ConfigFile      string
	ChartOptions    fetch.ChartOptions

	Managers managers.Flags

	LabeledConfigMaps bool

	// environment are the names of the variables that providers get from the operator's environment.
	environment []string

	// Controllers are the settings that decide how the operator reconciles.
	Controllers controllers.Options

	// Warnings describe settings that could not be read and are left empty.
	Warnings []string
}

// NotFoundError means that there is no Deployment of the operator.
type NotFoundError struct {
	// Namespace that was searched; empty means all.
	Namespace string
}

func (e *NotFoundError) Error() string {
	where := "the cluster"
	if e.Namespace != "" {
		where = "namespace " + e.Namespace
	}

	return fmt.Sprintf("there is no Deployment with the label %s in %s", labelText(), where)
}

// AmbiguousError means that there are several Deployments of the operator.
type AmbiguousError struct{ Deployments []string }

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf(
		"several Deployments have the label %s: %s",
		labelText(),
		strings.Join(e.Deployments, ", "),
	)
}

// label selects the operator's Deployment; its chart sets it.
var label = client.MatchingLabels{"app.kubernetes.io/name": "capstan"}

func labelText() string { return "app.kubernetes.io/name=" + label["app.kubernetes.io/name"] }

// Read reads the arguments of the operator's Deployment, which it looks for in a namespace; an empty
// one means all. Files that the operator has from Secrets and ConfigMaps are copied into folder. The
// error can be a *NotFoundError or an *AmbiguousError.
func Read(ctx context.Context, c client.Reader, namespace, folder string) (*Config, error) {
	deployment, err := Find(ctx, c, namespace)
	if err != nil {
		return nil, err
	}

	operator := Container(deployment)
	if operator == nil {
		return nil, fmt.Errorf("the Deployment %s/%s has no containers", deployment.Namespace, deployment.Name)
	}

	config, err := Parse(slices.Concat(operator.Command, operator.Args))
	if err != nil {
		return nil, fmt.Errorf("the Deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}

	m := mounts{
		reader: c, namespace: deployment.Namespace,
		volumes: deployment.Spec.Template.Spec.Volumes, mounts: operator.VolumeMounts,
	}

	config.readEnvironment(ctx, &m, operator)

	for _, f := range []struct {
		flag     string
		path     *string
		optional bool
	}{
		{"--registry-config", &config.RegistryConfig, false},
		{"--registry-ca", &config.RegistryCA, false},
		{"--" + managers.CAFlag, &config.Managers.CA, false},
		{"--chart-repository-verify-keys", &config.ChartOptions.VerifyKeys, false},
		{"--config", &config.ConfigFile, config.ConfigFile == fetch.DefaultConfigFile},
	} {
		if *f.path == "" {
			continue
		}

		data, err := m.read(ctx, *f.path)
		if err != nil {
			if !f.optional || !isNotMounted(err) {
				config.Warnings = append(
					config.Warnings,
					fmt.Sprintf("the operator's %s is left out: %s", f.flag, err),
				)
			}

			*f.path = ""

			continue
		}

		local := filepath.Join(folder, strings.TrimLeft(f.flag, "-")+path.Ext(*f.path))
		if err := os.WriteFile(local, data, 0o600); err != nil {
			return nil, err
		}

		*f.path = local
	}

	return config, nil
}

// Find returns the operator's Deployment, which it looks for in a namespace; an empty one means all. The
// error can be a *NotFoundError or an *AmbiguousError.
func Find(ctx context.Context, c client.Reader, namespace string) (*appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), label); err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}

	switch len(list.Items) {
	case 0:
		return nil, &NotFoundError{Namespace: namespace}
	case 1:
		return &list.Items[0], nil
	}

	names := make([]string, 0, len(list.Items))
	for _, d := range list.Items {
		names = append(names, d.Namespace+"/"+d.Name)
	}

	return nil, &AmbiguousError{Deployments: names}
}

// Container returns the operator's container in its Deployment; nil if there are no containers.
func Container(deployment *appsv1.Deployment) *corev1.Container {
	containers := deployment.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name == "operator" {
			return &containers[i]
		}
	}

	if len(containers) == 0 {
		return nil
	}

	return &containers[0]
}

// Parse reads the settings from the operator's command line. Files are paths in its pod.
func Parse(args []string) (*Config, error) {
	c := &Config{}
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&c.ImageRegistry, "image-registry", "", "")
	flags.StringVar(&c.ChartRepository, "chart-repository", "", "")
	flags.StringVar(&c.RegistryConfig, "registry-config", "", "")
	flags.StringVar(&c.RegistryCA, "registry-ca", "", "")
	flags.StringVar(&c.ConfigFile, "config", "", "")
	flags.BoolVar(&c.LabeledConfigMaps, fetch.LabeledConfigMapsFlag, false, "")
	c.ChartOptions.BindFlags(flags)
	c.Managers.BindFlags(flags)

	var (
		namespaces []string
		selector   string
	)

	flags.StringSliceVar(&c.environment, "variables-from-environment", nil, "")
	flags.StringSliceVar(&namespaces, "watch-namespaces", nil, "")
	flags.StringVar(&selector, "watch-label-selector", "", "")

	o := &c.Controllers
	flags.BoolVar(&o.Suspended, "suspend", false, "")
	flags.BoolVar(&o.KubeConfig.InsecureExecProvider, "insecure-kubeconfig-exec", false, "")
	flags.BoolVar(&o.KubeConfig.InsecureTLS, "insecure-kubeconfig-tls", false, "")
	flags.StringVar(&o.DefaultServiceAccount, "default-service-account", "", "")
	flags.BoolVar(&o.WatchConfigMaps, "watch-configmap", false, "")
	flags.BoolVar(&o.WatchSecrets, "watch-configsecret", false, "")
	flags.DurationVar(&o.MigrationDelay, "crd-migration-delay", time.Minute, "")
	flags.DurationVar(&o.RemoteInterval, "remote-interval", 5*time.Minute, "")
	flags.StringSliceVar(&o.KubeConfigAddresses, "allowed-kubeconfig-addresses", nil, "")
	o.ACL.BindFlags(flags)
	o.SourcePolicy.BindFlags(flags)

	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("read the operator's arguments: %w", err)
	}

	c.ConfigFile = cmp.Or(c.ConfigFile, fetch.DefaultConfigFile)

	var err error
	if o.Scope, err = watch.NewScope(namespaces, selector); err != nil {
		return nil, fmt.Errorf("read the operator's arguments: %w", err)
	}

	return c, nil
}

// mounts are the files that a container has from volumes.
type mounts struct {
	reader    client.Reader
	namespace string
	volumes   []corev1.Volume
	mounts    []corev1.VolumeMount
}
