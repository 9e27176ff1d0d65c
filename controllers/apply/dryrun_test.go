package apply

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestDryRunProblem(t *testing.T) {
	resource := func(name string) schema.GroupResource { return schema.GroupResource{Resource: name} }
	denied := errors.New(`admission webhook "validation.test" denied the request: no`)
	other := dryRunChange{brings: func(resource, name string) bool {
		return (resource == "namespaces" || resource == "roles") && name == "new"
	}}
	later := dryRunChange{later: true, brings: other.brings}
	defined := dryRunChange{later: true, defined: true, brings: other.brings}
	policy := errors.New(`ValidatingAdmissionPolicy 'a' with binding 'a' denied request: no`)

	for name, test := range map[string]struct {
		change dryRunChange
		err    error
		want   bool
	}{
		"success": {other, nil, false},
		"an invalid field": {
			other, apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "a", field.ErrorList{}), true,
		},
		"a denial by a policy":  {other, apierrors.NewForbidden(resource("services"), "a", errors.New("no")), true},
		"a denial by a webhook": {other, apierrors.NewForbidden(resource("services"), "a", denied), true},
		"a denial by a webhook, in a later wave": {
			later, apierrors.NewForbidden(resource("identities"), "a", denied), false,
		},
		"a denial by a policy, in a later wave": {
			later, apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "a",
				field.ErrorList{field.Invalid(field.NewPath("spec"), "", policy.Error())}), false,
		},
		"a missing permission, in a later wave": {
			later, apierrors.NewForbidden(resource("services"), "a", errors.New("no")), false,
		},
		"an invalid field, in a later wave": {
			later, apierrors.NewInvalid(schema.GroupKind{Kind: "Identity"}, "a", field.ErrorList{}), true,
		},
		"an invalid field of a kind that an earlier wave changes": {
			defined, apierrors.NewInvalid(schema.GroupKind{Kind: "Identity"}, "a", field.ErrorList{}), false,
		},
		"an API server that does not respond, later": {defined, errors.New("connection refused"), true},
		"a namespace that exists nowhere":            {other, apierrors.NewNotFound(resource("namespaces"), "old"), true},
		"a namespace that comes with it":             {other, apierrors.NewNotFound(resource("namespaces"), "new"), false},
		"a binding of a role that exists nowhere":    {other, apierrors.NewNotFound(resource("rolebindings"), "old"), true},
		"a binding of a role that comes with it":     {other, apierrors.NewNotFound(resource("rolebindings"), "new"), false},
		"a Pod without its ServiceAccount": {
			other, apierrors.NewForbidden(resource("pods"), "a", errors.New("no")), false,
		},
		"an object that others have created": {other, apierrors.NewAlreadyExists(resource("services"), "a"), false},
		"an object that others have written": {other, apierrors.NewConflict(resource("services"), "a", nil), false},
		"a webhook that cannot be dry-run": {
			other, apierrors.NewBadRequest(`admission webhook "a" does not support dry run`), false,
		},
		"another bad request": {other, apierrors.NewBadRequest("the object has no name"), true},
		"a webhook that does not answer": {
			other, apierrors.NewInternalError(errors.New(`failed calling webhook "a"`)), false,
		},
		"another internal error":              {other, apierrors.NewInternalError(errors.New("etcd has no leader")), true},
		"an API server that does not respond": {other, errors.New("connection refused"), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			if test.want {
				g.Expect(test.change.problem(test.err)).To(Equal(test.err))
			} else {
				g.Expect(test.change.problem(test.err)).To(Succeed())
			}
		})
	}
}
