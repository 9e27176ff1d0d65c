package cli

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers"
)

// OperatorConfig is how the operator is configured, as far as it publishes that.
type OperatorConfig struct {
	controllers.Config
	// Contents are those of the files that flags name, by their paths; nil if nothing is known of the operator.
	Contents map[string]string
	// Operator is the operator's version; empty if it is unknown.
	Operator ProgramVersion
	// Warnings describe settings that are not known, and keep their defaults.
	Warnings []string
}

// newOperatorConfig returns the configuration of an operator whose flags have values. The other flags have their
// defaults. A warning names the flags that this program does not know.
func newOperatorConfig(values map[string]string) (*OperatorConfig, error) {
	config := &OperatorConfig{}

	unknown, err := config.Set(values)
	if len(unknown) > 0 {
		config.Warnings = append(config.Warnings, fmt.Sprintf(
			"the operator has flags that this program does not know and leaves out: --%s; use a program of the operator's "+
				"version", strings.Join(unknown, ", --")))
	}

	return config, err
}

// OperatorError means that there is no Deployment of the operator, or that there are several.
type OperatorError struct {
	// Namespace that was searched; empty means all.
	Namespace string
	// Deployments that were found.
	Deployments []string
}

func (e *OperatorError) Error() string {
	const label = operatorLabel + "=" + operatorLabelValue
	if len(e.Deployments) > 0 {
		return fmt.Sprintf("several Deployments have the label %s: %s", label, strings.Join(e.Deployments, ", "))
	}

	where := "the cluster"
	if e.Namespace != "" {
		where = "namespace " + e.Namespace
	}

	return fmt.Sprintf("there is no Deployment with the label %s in %s", label, where)
}

// operatorLabel is that of the operator's Deployment; its chart sets it.
const operatorLabel, operatorLabelValue = "app.kubernetes.io/name", "capstan"

// readOperatorConfig reads what the operator has published. It looks for the operator in a namespace; an empty one
// means all. The error can be an *OperatorError.
func readOperatorConfig(ctx context.Context, c client.Reader, namespace string) (*OperatorConfig, error) {
	deployment, err := FindOperator(ctx, c, namespace)
	if err != nil {
		return nil, err
	}

	published, err := controllers.ReadPublished(ctx, c, deployment.Namespace)
	if err != nil {
		return nil, err
	}

	version, known := OperatorVersion(deployment, published), published != nil
	if !known {
		published = &controllers.Published{}
	}

	config, err := newOperatorConfig(published.Flags)
	if err != nil {
		return nil, err
	}

	config.Options.Namespace = deployment.Namespace
	config.Operator = version
	config.Contents = published.Files

	if !known {
		config.Warnings = append(config.Warnings, fmt.Sprintf("the operator has not published its configuration in "+
			"ConfigMap %s/%s, so its defaults are used; wait until it runs, or set flags such as --image-registry",
			deployment.Namespace, controllers.PublishedName))
	}

	return config, nil
}

// FindOperator returns the operator's Deployment, which it looks for in a namespace; an empty one means all. The
// error can be an *OperatorError.
func FindOperator(ctx context.Context, c client.Reader, namespace string) (*appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	if err := c.List(
		ctx, list, client.InNamespace(namespace), client.MatchingLabels{operatorLabel: operatorLabelValue},
	); err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}

	if len(list.Items) == 1 {
		return &list.Items[0], nil
	}

	missing := &OperatorError{Namespace: namespace}
	for _, d := range list.Items {
		missing.Deployments = append(missing.Deployments, d.Namespace+"/"+d.Name)
	}

	return nil, missing
}
