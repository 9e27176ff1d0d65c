package contracts_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const kubernetesVersion = "v1.34.0"

// initialized is the status of an object whose provider has done its work.
func initialized(field string, more map[string]any) map[string]any {
	status := map[string]any{"initialization": map[string]any{field: true}}
	for key, value := range more {
		status[key] = value
	}

	return status
}

// controlPlane creates a control plane that runs.
func (r *release) controlPlane(t *testing.T) clusterv1.ContractVersionedObjectReference {
	return r.create(t, "ControlPlane", map[string]any{"version": kubernetesVersion},
		initialized("controlPlaneInitialized", map[string]any{"version": kubernetesVersion}))
}

// provisionCluster creates a Cluster with infrastructure and a control plane, and returns what core does not see of it.
func provisionCluster(t *testing.T, r *release) string {
	r.install(t)

	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.bundle.Provider.Name}}
	c.Spec.InfrastructureRef = r.create(t, "Cluster", map[string]any{}, initialized("provisioned", nil))
	c.Spec.ControlPlaneRef = r.controlPlane(t)
	NewWithT(t).Expect(r.client.Create(t.Context(), c)).To(Succeed())

	return r.settled(t, func(context.Context) map[string]bool {
		r.get(t, c)

		return map[string]bool{
			"infrastructure": ptr.Deref(c.Status.Initialization.InfrastructureProvisioned, false),
			"control plane":  ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false),
		}
	})
}

// provisionMachine creates a Machine, and returns what core does not see of its infrastructure and its bootstrap data.
func provisionMachine(t *testing.T, r *release) string {
	r.install(t)

	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.bundle.Provider.Name}}
	m.Spec.ClusterName = sharedCluster.Name
	m.Spec.InfrastructureRef = r.create(t, "Machine",
		map[string]any{"providerID": "example://" + m.Name}, initialized("provisioned", nil))
	m.Spec.Bootstrap.ConfigRef = r.create(t, "Config",
		map[string]any{}, initialized("dataSecretCreated", map[string]any{"dataSecretName": "data"}))
	NewWithT(t).Expect(r.client.Create(t.Context(), m)).To(Succeed())

	return r.settled(t, func(context.Context) map[string]bool {
		r.get(t, m)

		return map[string]bool{
			"infrastructure": ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false),
			"bootstrap data": ptr.Deref(m.Status.Initialization.BootstrapDataSecretCreated, false),
		}
	})
}

// provisionMachinePool creates a MachinePool, and returns what core does not see of its infrastructure.
func provisionMachinePool(t *testing.T, r *release) string {
	r.install(t)

	p := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.bundle.Provider.Name}}
	p.Spec.ClusterName = sharedCluster.Name
	p.Spec.Template.Spec.ClusterName = sharedCluster.Name
	p.Spec.Template.Spec.Bootstrap.DataSecretName = new("data")
	status := initialized("provisioned", map[string]any{"ready": true, "replicas": int64(1)})

	if r.typeOf(t, "MachinePool", "infrastructureMachineKind") == "array" {
		status["infrastructureMachineKind"] = []any{"Machine"}
	}

	p.Spec.Template.Spec.InfrastructureRef = r.create(t, "MachinePool",
		map[string]any{"providerIDList": []any{"example://" + p.Name}}, status)
	NewWithT(t).Expect(r.client.Create(t.Context(), p)).To(Succeed())

	return r.settled(t, func(context.Context) map[string]bool {
		r.get(t, p)

		return map[string]bool{
			"bootstrap data": ptr.Deref(p.Status.Initialization.BootstrapDataSecretCreated, false),
			"infrastructure": ptr.Deref(p.Status.Initialization.InfrastructureProvisioned, false),
			"provider IDs":   len(p.Spec.ProviderIDList) > 0,
		}
	})
}

// scaleMachineSet creates a MachineSet, and returns why core creates no Machine.
func scaleMachineSet(t *testing.T, r *release) string {
	g := NewWithT(t)
	name := r.bundle.Provider.Name

	r.install(t)

	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.InfrastructureRef = r.create(t, "Cluster", map[string]any{}, initialized("provisioned", nil))
	c.Spec.ControlPlaneRef = r.controlPlane(t)
	g.Expect(r.client.Create(t.Context(), c)).To(Succeed())

	s := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	template := map[string]any{"template": map[string]any{"spec": map[string]any{}}}
	labels := map[string]string{"set": name}
	s.Spec = clusterv1.MachineSetSpec{
		ClusterName: name, Replicas: new(int32(1)), Selector: metav1.LabelSelector{MatchLabels: labels},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: labels},
			Spec: clusterv1.MachineSpec{
				ClusterName: name, Version: kubernetesVersion,
				InfrastructureRef: r.create(t, "MachineTemplate", template, nil),
				Bootstrap:         clusterv1.Bootstrap{ConfigRef: r.create(t, "ConfigTemplate", template, nil)},
			},
		},
	}
	g.Expect(r.client.Create(t.Context(), s)).To(Succeed())

	var reason string

	g.Eventually(func(g Gomega) {
		r.get(t, s)

		machines := &clusterv1.MachineList{}
		g.Expect(r.client.List(t.Context(), machines, client.MatchingLabels(labels))).To(Succeed())

		reason = ""
		if len(machines.Items) == 0 {
			reason = conditions.GetMessage(s, clusterv1.MachineSetScalingUpCondition)
			g.Expect(reason).To(ContainSubstring("preflight check"))
		}
	}).WithTimeout(timeout).Should(Succeed())

	return reason
}

// applyTopology writes a control plane as core does for a Cluster with a ClusterClass, and returns why the API server
// rejects it.
func applyTopology(t *testing.T, r *release) string {
	r.install(t)

	o := r.newObject(t, "ControlPlane", map[string]any{
		"replicas": int64(3),
		"version":  kubernetesVersion,
		"machineTemplate": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{clusterv1.ClusterNameLabel: "any"}},
			"spec": map[string]any{
				"infrastructureRef": map[string]any{"apiGroup": "any", "kind": "Any", "name": "any"},
			},
		},
	})

	var err error

	NewWithT(t).Eventually(func() bool {
		err = r.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("capi-topology"))
		return !apierrors.IsNotFound(err) // until the API server knows the kind
	}).WithTimeout(timeout).Should(BeTrue())

	return errorText(err)
}

// accessOfCore grants core what the roles of the release say, and returns what core may not read.
func accessOfCore(t *testing.T, r *release) string {
	g := NewWithT(t)
	r.install(t)

	for _, o := range r.objects {
		if o.GetKind() == "ClusterRole" {
			g.Expect(r.client.Create(t.Context(), o.DeepCopy())).To(Succeed())
		}
	}

	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.bundle.Provider.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "aggregated-manager-role"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "core"}},
	}
	g.Expect(r.client.Create(t.Context(), binding)).To(Succeed())

	definition := r.kind(t, "Cluster")

	return r.settled(t, func(context.Context) map[string]bool {
		allowed := func(group, resource string) bool {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "core",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: group, Resource: resource},
			}}
			g.Expect(r.client.Create(t.Context(), review)).To(Succeed())

			return review.Status.Allowed
		}

		return map[string]bool{
			"Clusters":       allowed(clusterv1.GroupVersion.Group, "clusters"),
			"infrastructure": allowed(definition["group"].(string), definition["names"].(map[string]any)["plural"].(string)),
		}
	})
}
