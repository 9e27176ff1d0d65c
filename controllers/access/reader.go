package access

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/acl"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// accountReader explains what is forbidden to an account, and refuses other namespaces.
type accountReader struct {
	reader client.Reader
	// user is that of the account, which operator looks up; empty for the operator itself.
	user     string
	account  types.NamespacedName
	operator client.Reader
	// namespace is the only one that may be read; empty for all.
	namespace string
}

// Get reads an object.
func (r *accountReader) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	kind := kindOf(object)
	if err := r.checkNamespace(kind+" "+key.String(), key.Namespace); err != nil {
		return err
	}

	err := r.reader.Get(ctx, key, object, options...)

	return r.explain(ctx, err, request{"get", kind, key.Namespace, kind + " " + key.String()})
}

// List lists objects.
func (r *accountReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind := strings.TrimSuffix(kindOf(list), "List")
	applied := (&client.ListOptions{}).ApplyOptions(options)

	if err := r.checkNamespace(kind+"s in namespace "+applied.Namespace, applied.Namespace); err != nil {
		return err
	}

	err := r.reader.List(ctx, list, options...)

	return r.explain(ctx, err, request{verb: "list", kind: kind, namespace: applied.Namespace})
}

// checkNamespace returns an acl.AccessDeniedError unless a namespace may be read.
func (r *accountReader) checkNamespace(what, namespace string) error {
	if r.namespace == "" || r.namespace == namespace {
		return nil
	}

	return acl.AccessDeniedError(fmt.Sprintf("%s is in another namespace than the resource that names it, which "+
		"--no-cross-namespace-refs does not allow; move it to namespace %s and correct the resource", what, r.namespace))
}

// request is one for what a resource names.
type request struct {
	verb, kind, namespace string
	// object is empty for a list.
	object string
}

// explain returns a *problem.Error if the account lacks a permission. That the operator may not impersonate the account
// is another problem, which the API server describes.
func (r *accountReader) explain(ctx context.Context, err error, asked request) error {
	if r.user == "" || !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "cannot impersonate") {
		return err
	}

	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))

	user := r.user
	if apierrors.IsNotFound(r.operator.Get(ctx, r.account, account)) {
		user += " does not exist and"
	}

	resource := strings.ToLower(asked.kind) + "s"
	forbidden := problem.Refuse(v1alpha2.MissingPermissionsReason,
		"%s may not %s %s, which the resource names; grant it %s for %s in namespace %s, or change the resource",
		user, asked.verb, cmp.Or(asked.object, resource), asked.verb, resource, asked.namespace)
	forbidden.Cause, forbidden.Alone = err, true

	return forbidden
}

// kindOf returns the kind of an object or list.
func kindOf(object runtime.Object) string {
	gvk, err := apiutil.GVKForObject(object, clientgoscheme.Scheme)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}

	return gvk.Kind
}
