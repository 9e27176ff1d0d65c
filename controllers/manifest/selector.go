package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capstan-project/capstan/controllers/object"
)

// selector selects objects. Its empty fields match any object.
type selector struct {
	apiVersion string
	group      string
	version    string
	kind       string
	name       string
	namespace  string
	labels     labels.Selector
}

func (s selector) matches(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind()

	for _, field := range []struct{ wanted, actual string }{
		{s.apiVersion, o.GetAPIVersion()},
		{s.group, kind.Group},
		{s.version, kind.Version},
		{s.kind, kind.Kind},
		{s.name, o.GetName()},
		{s.namespace, o.GetNamespace()},
	} {
		if field.wanted != "" && field.wanted != field.actual {
			return false
		}
	}

	return s.labels == nil || s.labels.Matches(labels.Set(o.GetLabels()))
}

func (s selector) String() string {
	var parts []string

	for _, field := range []struct{ name, value string }{
		{"apiVersion", s.apiVersion},
		{"group", s.group},
		{"version", s.version},
		{"kind", s.kind},
		{"name", s.name},
		{"namespace", s.namespace},
	} {
		if field.value != "" {
			parts = append(parts, field.name+" "+field.value)
		}
	}

	if s.labels != nil {
		parts = append(parts, "labels "+s.labels.String())
	}

	if len(parts) == 0 {
		return "all objects"
	}

	return strings.Join(parts, ", ")
}

// maxListed limits how many objects a message lists.
const maxListed = 10

// noMatch describes that the selector matches none of the objects, and lists those of its kind.
func (s selector) noMatch(objects []*unstructured.Unstructured) string {
	var listed []string

	for _, o := range objects {
		if s.kind == "" || s.kind == o.GetKind() {
			listed = append(listed, object.KeyOf(o).String())
		}
	}

	if len(listed) > maxListed {
		listed = append(listed[:maxListed], fmt.Sprintf("%d more", len(listed)-maxListed))
	}

	ofKind := "none"
	if len(listed) > 0 {
		ofKind = strings.Join(listed, ", ")
	}

	return fmt.Sprintf("it matches no object; its target is %s; objects of that kind: %s; correct the target", s, ofKind)
}
