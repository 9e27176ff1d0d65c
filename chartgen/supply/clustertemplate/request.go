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

// Request describes the workload cluster to generate.
type Request struct {
	// Name of the cluster, a DNS subdomain.
	Name string
	// Namespace of all its objects, a DNS label.
	Namespace string
	// Flavor of the template; empty means the default template.
	Flavor string
	// KubernetesVersion is a semantic version; empty means the variable KUBERNETES_VERSION.
	KubernetesVersion string
	// ControlPlaneMachines is at least 1; nil means the variable CONTROL_PLANE_MACHINE_COUNT, or else
	// 1.
	ControlPlaneMachines *int64
	// WorkerMachines is at least 0; nil means the variable WORKER_MACHINE_COUNT, or else 0.
	WorkerMachines *int64
}

// apply validates the request and sets the variables that all templates share.
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

	controlPlane := machineCount{variable: variableControlPlaneMachines, what: "control plane machines", minimum: 1}
	if err := controlPlane.apply(variables, r.ControlPlaneMachines); err != nil {
		return err
	}

	workers := machineCount{variable: variableWorkerMachines, what: "worker machines", minimum: 0}

	return workers.apply(variables, r.WorkerMachines)
}

// machineCount is a variable with a number of machines.
type machineCount struct {
	variable string
	// what names the machines in errors.
	what string
	// minimum is also the default, as in clusterctl.
	minimum int64
}

// apply sets the variable to the requested number, or else to its present value, or else to the
// minimum.
func (m machineCount) apply(variables config.VariablesClient, requested *int64) error {
	count := m.minimum

	if requested != nil {
		count = *requested
	} else if value, err := variables.Get(m.variable); err == nil {
		count, err = strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf(
				"the number of %s, variable %s, is not a whole number; set it to %d or more",
				m.what,
				m.variable,
				m.minimum,
			)
		}
	}

	if count < m.minimum {
		return fmt.Errorf("the number of %s is %d; set it to %d or more", m.what, count, m.minimum)
	}

	variables.Set(m.variable, strconv.FormatInt(count, 10))

	return nil
}

// Variable is a variable of a template.
type Variable struct {
	Name string
	// Default is the value if the variable is not set, with text in quotes; nil if the variable is
	// required.
	Default *string
}

// Variables lists the variables of the requested template, sorted by name, like `clusterctl generate
// cluster --list-variables`. Variables that the request determines, and a KUBERNETES_VERSION that is
// set, are listed with their values as defaults. ClusterClasses have no variables by the provider
// contract.
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
			if set, err := variables.Get(name); err == nil {
				value = &set
			}
		}

		list = append(list, Variable{Name: name, Default: value})
	}

	slices.SortFunc(list, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })

	return list, nil
}

// missingVariables returns the required variables of a file that are not set, sorted.
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
