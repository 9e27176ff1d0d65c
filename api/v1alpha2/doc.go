// Package v1alpha2 is the API of Capstan: seven kinds, one for each type of Cluster API provider,
// in the group operator.cluster.x-k8s.io. A resource names a provider and a version; Capstan keeps
// that provider installed as a Helm release.
//
// The kinds, fields and ConfigMap contract are those of cluster-api-operator's v1alpha2, so its
// resources apply unchanged; Capstan adds fields of its own. CEL rules in the CRDs validate what can
// be checked within one resource. The operator checks what depends on other objects, and reports
// the result in conditions.
//
// +kubebuilder:object:generate=true
// +groupName=operator.cluster.x-k8s.io
package v1alpha2
