package e2e

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1" //nolint:staticcheck // old versions are converted
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // as above
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/conversion"
	crconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// coreScheme and coreConverters come from Cluster API. They convert v1beta1 to v1beta2 and back.
var coreScheme, coreConverters = func() (*runtime.Scheme, map[string]crconversion.Converter) {
	scheme, converters := runtime.NewScheme(), map[string]crconversion.Converter{}
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1beta1.AddToScheme,
		clusterv1.AddToScheme,
		addonsv1beta1.AddToScheme,
		addonsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // a programming error, which the first test finds
		}
	}

	for kind, build := range map[string]func(*runtime.Scheme) (crconversion.Converter, error){
		"Cluster":                   conversion.Cluster,
		"ClusterClass":              conversion.ClusterClass,
		"Machine":                   conversion.Machine,
		"MachineSet":                conversion.MachineSet,
		"MachineDeployment":         conversion.MachineDeployment,
		"MachinePool":               conversion.MachinePool,
		"MachineHealthCheck":        conversion.MachineHealthCheck,
		"MachineDrainRule":          conversion.MachineDrainRule,
		"ClusterResourceSet":        conversion.ClusterResourceSet,
		"ClusterResourceSetBinding": conversion.ClusterResourceSetBinding,
	} {
		converter, err := build(scheme)
		if err != nil {
			panic(err)
		}

		converters[kind] = converter
	}

	conversion.SetAPIVersionGetter(
		func(_ context.Context, gk schema.GroupKind) (string, error) { return gk.Group + "/v1beta1", nil },
	)

	return scheme, converters
}()

// convertCore converts objects as Cluster API's manager does, where its code is available.
// Otherwise it changes only the apiVersion, since the objects of the scenarios use only fields that
// both versions have.
func convertCore(ctx context.Context, o *unstructured.Unstructured, to string) (*unstructured.Unstructured, error) {
	converter, known := coreConverters[o.GetKind()]

	desired := schema.FromAPIVersionAndKind(to, o.GetKind())
	if known && old(o.GroupVersionKind()) {
		o = relabelled(o, desired.GroupKind().WithVersion("v1beta1"))
	}

	from := o.GroupVersionKind()
	switch {
	case from == desired:
		return o, nil
	case !known || old(desired):
		return relabelled(o, desired), nil
	}

	source, err := coreScheme.New(from)
	if err != nil {
		return nil, err
	}

	target, err := coreScheme.New(desired)
	if err != nil {
		return nil, err
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, source); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", from, o.GetName(), err)
	}

	target.GetObjectKind().SetGroupVersionKind(desired)

	if err := converter.ConvertObject(ctx, source, target); err != nil {
		return nil, fmt.Errorf("convert %s %s to %s: %w", from, o.GetName(), to, err)
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(target)
	if err != nil {
		return nil, err
	}

	return relabelled(&unstructured.Unstructured{Object: content}, desired), nil
}

// old reports whether a version is older than v1beta1, and thus no longer part of Cluster API's
// code.
func old(gvk schema.GroupVersionKind) bool { return strings.HasPrefix(gvk.Version, "v1alpha") }

func relabelled(o *unstructured.Unstructured, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetGroupVersionKind(gvk)

	return o
}
