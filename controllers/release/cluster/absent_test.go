package cluster

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

func TestAbsentClient(t *testing.T) {
	mapping := &meta.RESTMapping{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Scope:    meta.RESTScopeNamespace,
	}
	_, err := resource.NewHelper(absentClient{}, mapping).Get("ns", "config")

	NewWithT(t).Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
}
