package clustertemplate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// The variables that all providers' templates share, by the clusterctl provider contract.
const (
	variableClusterName          = "CLUSTER_NAME"
	variableNamespace            = "NAMESPACE"
	variableKubernetesVersion    = "KUBERNETES_VERSION"
	variableControlPlaneMachines = "CONTROL_PLANE_MACHINE_COUNT"
	variableWorkerMachines       = "WORKER_MACHINE_COUNT"
)

var processor = yamlprocessor.NewSimpleProcessor()

// Request says which workload cluster is wanted.
type Request struct {
	// Name of the cluster, a DNS subdomain.
	Name string
	// Namespace of all its objects, a DNS label.
	Namespace string
	// Flavor of the template; "" for the default.
	Flavor string
	// KubernetesVersion, a semantic version; "" leaves it to the variable KUBERNETES_VERSION.
	KubernetesVersion string
	// ControlPlaneMachines, at least 1; nil leaves them to the variable
	// CONTROL_PLANE_MACHINE_COUNT, else 1.
	ControlPlaneMachines *int64
	// WorkerMachines, at least 0; nil leaves them to the variable WORKER_MACHINE_COUNT, else 0.
	WorkerMachines *int64
}

// apply checks the request and sets the variables that all templates share.
func (r Request) apply(variables config.VariablesClient) error {
	if reasons := validation.IsDNS1123Label(r.Namespace); len(reasons) > 0 {
		return fmt.Errorf("namespace %q is not valid: %s", r.Namespace, strings.Join(reasons, "; "))
	}

	variables.Set(variableNamespace, r.Namespace)

	if reasons := validation.IsDNS1123Subdomain(r.Name); len(reasons) > 0 {
		return fmt.Errorf("cluster name %q is not valid: %s", r.Name, strings.Join(reasons, "; "))
	}

	variables.Set(variableClusterName, r.Name)

	if r.KubernetesVersion != "" {
		if _, err := version.ParseSemantic(r.KubernetesVersion); err != nil {
			return fmt.Errorf("kubernetes version %q is not a semantic version; write for example v1.34.0", r.KubernetesVersion)
		}

		variables.Set(variableKubernetesVersion, r.KubernetesVersion)
	}

	if err := applyCount(
		variables,
		"control plane machines",
		variableControlPlaneMachines,
		r.ControlPlaneMachines,
		1,
	); err != nil {
		return err
	}

	return applyCount(variables, "worker machines", variableWorkerMachines, r.WorkerMachines, 0)
}

// applyCount settles a number of machines: the requested one, else the variable's, else the least,
// which is clusterctl's default.
func applyCount(variables config.VariablesClient, what, name string, requested *int64, least int64) error {
	count := least
	if requested != nil {
		count = *requested
	} else if value, err := variables.Get(name); err == nil {
		if count, err = strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("the number of %s, variable %s, is not a whole number; set it to %d or more", what, name, least)
		}
	}

	if count < least {
		return fmt.Errorf("the number of %s is %d; set it to %d or more", what, count, least)
	}

	variables.Set(name, strconv.FormatInt(count, 10))

	return nil
}

// Variable is a variable of a template.
type Variable struct {
	Name string
	// Default is what the template gets when nobody sets the variable, text in quotes; nil when it
	// is required.
	Default *string
}

// Variables lists the variables of the requested template by name, as `clusterctl generate cluster
// --list-variables` does: those of ClusterClasses are not among them, since the provider contract
// allows none there. What the request decides, and a KUBERNETES_VERSION that is set, stands as
// default.
func (s *Set) Variables(r Request, variables config.VariablesClient) ([]Variable, error) {
	if err := r.apply(variables); err != nil {
		return nil, err
	}

	file, err := s.template(r.Flavor)
	if err != nil {
		return nil, err
	}

	defaults, err := processor.GetVariableMap(file.Data)
	if err != nil {
		return nil, s.expressionError(file, err)
	}

	var list []Variable

	for name, value := range defaults {
		if value != nil && !strings.HasPrefix(*value, `"`) {
			value = new(strconv.Quote(*value))
		}

		switch name {
		case variableClusterName,
			variableNamespace,
			variableKubernetesVersion,
			variableControlPlaneMachines,
			variableWorkerMachines:
			if decided, err := variables.Get(name); err == nil {
				value = &decided
			}
		}

		list = append(list, Variable{Name: name, Default: value})
	}

	slices.SortFunc(list, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })

	return list, nil
}

// missing are the required variables of a file that are not set, sorted.
func missingVariables(file bundle.File, variables config.VariablesClient) ([]string, error) {
	defaults, err := processor.GetVariableMap(file.Data)
	if err != nil {
		return nil, err
	}

	names := slices.Sorted(maps.Keys(defaults))

	return slices.DeleteFunc(names, func(name string) bool {
		_, err := variables.Get(name)
		return err == nil || defaults[name] != nil
	}), nil
}
