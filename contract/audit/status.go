package audit

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/contract"
)

// statusRules are about what providers report to core.
var statusRules = []rule{
	{
		Name:        "status/initialization",
		Level:       contract.Error,
		Contract:    infraMachineContract + "#inframachine-initialization-completed",
		Requirement: "Objects report their initialization in the contract's boolean field.",
		Why:         "Cluster API's core reads only that field, and waits for it.",
		Remedy:      "Set the field, or label the CRD with the contract that the version implements.",
		Check:       checkInitialization,
	},
	{
		Name:        "status/provider-id",
		Level:       contract.Error,
		Contract:    infraMachineContract + "#inframachine-provider-id",
		Requirement: "A provisioned machine has a unique spec.providerID, also in its Machine.",
		Why:         "Cluster API's core does not find the Node of the Machine, or that of another one.",
		Remedy:      "Set the ID of the Node before the machine is reported as provisioned.",
		Check:       checkProviderIDs,
	},
	{
		Name:        "status/endpoint",
		Level:       contract.Error,
		Contract:    infraClusterContract + "#infracluster-control-plane-endpoint",
		Requirement: "A Cluster with an initialized control plane has an endpoint that does not change.",
		Why:         "Nodes cannot join, and the kubeconfig is not created or points to another address.",
		Remedy:      "Set spec.controlPlaneEndpoint with host and port in the object that provides the endpoint, once.",
		Check:       checkEndpoints,
	},
	{
		Name:        "status/kubernetes-version",
		Level:       contract.Warning,
		Contract:    controlPlaneContract + "#controlplane-version",
		Requirement: "Versions of control planes and Machines are semantic, and begin with v.",
		Why:         "Core cannot compare versions, so upgrades stop or machines are replaced again and again.",
		Remedy:      "Write the version as v1.2.3, and add a missing v in the provider's webhook.",
		Check:       checkKubernetesVersions,
	},
	{
		Name:        "status/control-plane-components",
		Level:       contract.Error,
		Contract:    controlPlaneContract + "#typical-controlplane-reconciliation-workflow",
		Requirement: "The components of a control plane are healthy on all machines.",
		Why:         "The workload cluster works partly or not at all, and the control plane is not upgraded.",
		Remedy:      "Read the message of the condition, and the log of the component on the machine.",
		Check:       checkControlPlaneComponents,
	},
	{
		Name:        "status/deletion",
		Level:       contract.Warning,
		Contract:    "https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/",
		Requirement: "A deleted object is gone within the deletion timeout.",
		Why:         "Its finalizer keeps it, and so the objects that own it and what it represents, such as a server.",
		Remedy:      "Check that the manager which removes the finalizer runs, and why it cannot delete the object.",
		Check: func(g *graph, report reporter) {
			for _, o := range g.objects {
				since := o.GetDeletionTimestamp()
				if since.IsZero() || g.snapshot.Time.Sub(since.Time) < g.options.DeletionTimeout {
					continue
				}

				report(o.place(), "is being deleted since %s, blocked by its finalizers %s",
					timeText(since.Time), list(o.GetFinalizers()))
			}
		},
	},
}

// initialization returns the fields that report an initialization in v1beta2 and in v1beta1.
func initialization(r role) (newField, oldField []string) {
	switch r {
	case controlPlane:
		return []string{"status", "initialization", "controlPlaneInitialized"}, []string{"status", "initialized"}
	case bootstrapConfig:
		return []string{"status", "initialization", "dataSecretCreated"}, []string{"status", "ready"}
	default:
		return []string{"status", "initialization", "provisioned"}, []string{"status", "ready"}
	}
}

// isInitialized reports whether the target of a link is initialized by the contract of its kind.
func isInitialized(l link) bool {
	current, _ := initializationFields(l)
	return l.target.flag(current...)
}

// initializationFields returns the field that core reads, and that of the other contract.
func initializationFields(l link) (current, other []string) {
	current, other = initialization(l.role)
	if l.target.kind.contract == v1beta1 {
		return other, current
	}

	return current, other
}

func checkInitialization(g *graph, report reporter) {
	for _, l := range g.linked(infraCluster, infraMachine, infraPool, bootstrapConfig, controlPlane) {
		current, other := initializationFields(l)
		value := l.target.field(current...)

		if _, isFlag := value.(bool); value != nil && !isFlag {
			report(l.target.place(), "has %s of another type than boolean", strings.Join(current, "."))
			continue
		}

		if value == nil && l.target.flag(other...) && l.target.kind.contract != "" {
			report(l.target.place(), "reports its initialization in %s, but core reads %s, which the contract %s requires",
				strings.Join(other, "."), strings.Join(current, "."), l.target.kind.contract)
		}
	}
}

func checkProviderIDs(g *graph, report reporter) {
	users := map[string]*object{}

	for _, l := range g.linked(infraMachine) {
		id := l.target.text("spec", "providerID")
		machine := l.from.text("spec", "providerID")

		switch {
		case id == "" && isInitialized(l):
			report(l.target.place(), "is provisioned, but has no spec.providerID")
		case id == "":
		case machine != "" && machine != id:
			report(l.target.place(), "has the spec.providerID %s, but that of %s is %s", quote(id), l.from, quote(machine))
		case users[id] != nil:
			report(l.target.place(), "has the same spec.providerID as %s", users[id])
		default:
			users[id] = l.target
		}
	}
}

func checkEndpoints(g *graph, report reporter) {
	for _, l := range g.linked(controlPlane) {
		if !isInitialized(l) {
			continue
		}

		providers := []string{l.target.kind.provider}
		infra := g.of(l.from, infraCluster)

		if infra != nil {
			providers = append(providers, infra.kind.provider)
		}

		want := endpoint(l.from)
		if strings.HasPrefix(want, ":") || strings.HasSuffix(want, ":0") {
			report(l.from.place(providers...), "has the endpoint %s, but its control plane is initialized", quote(want))
			continue
		}

		for _, o := range []*object{infra, l.target} {
			if o == nil || o.text("spec", "controlPlaneEndpoint", "host") == "" {
				continue
			}

			if got := endpoint(o); got != want {
				report(o.place(), "has the endpoint %s, but that of %s is %s", quote(got), l.from, quote(want))
			}
		}
	}
}

// endpoint returns the endpoint of an object as host:port.
func endpoint(o *object) string {
	port, _ := o.field("spec", "controlPlaneEndpoint", "port").(int64)
	return fmt.Sprintf("%s:%d", o.text("spec", "controlPlaneEndpoint", "host"), port)
}

func checkKubernetesVersions(g *graph, report reporter) {
	check := func(o *object) {
		v := o.text("spec", "version")
		if v == "" {
			return
		}

		if _, err := version.ParseSemantic(v); err != nil || !strings.HasPrefix(v, "v") {
			report(o.place(), "has the spec.version %s", quote(v))
		}
	}

	for _, l := range g.linked(controlPlane) {
		check(l.target)
	}

	g.each("Machine", check)
}

// componentConditions are the conditions of Machines in which control planes report the health of their
// components.
var componentConditions = []string{
	"APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy",
}

func checkControlPlaneComponents(g *graph, report reporter) {
	g.each("Machine", func(o *object) {
		if _, ok := o.GetLabels()[clusterv1.MachineControlPlaneLabel]; !ok || !o.GetDeletionTimestamp().IsZero() {
			return
		}

		var providers []string

		for _, ref := range o.GetOwnerReferences() {
			if owner := g.owner(ref); owner != nil {
				providers = append(providers, owner.kind.provider)
			}
		}

		for _, c := range o.conditions() {
			if slices.Contains(componentConditions, c.kind) && c.status == "False" {
				report(o.place(providers...), "has the condition %s=%s", c.kind, c.status)
			}
		}
	})
}
