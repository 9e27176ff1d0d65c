package dryrun

import (
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// address is what the path of a request names: an object, or a list if the name is empty.
type address struct {
	host, prefix                 string
	group, version, resource     string
	namespace, name, subresource string
}

// parse returns what the URL of a request names. It reports false for what is no object, such as discovery.
func parse(from *url.URL) (address, bool) {
	at := address{host: from.Host}

	prefix, rest, core := strings.Cut(from.Path, "/api/")
	if !core {
		prefix, rest, _ = strings.Cut(from.Path, "/apis/")
	}

	at.prefix = prefix
	parts := strings.Split(strings.Trim(rest, "/"), "/")

	if !core && len(parts) > 0 {
		at.group, parts = parts[0], parts[1:]
	}

	if len(parts) < 2 {
		return at, false
	}

	at.version, parts = parts[0], parts[1:]

	// Namespaces are objects, and have their own subresources.
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		at.namespace, parts = parts[1], parts[2:]
	}

	at.resource = parts[0]

	if len(parts) > 1 {
		at.name = parts[1]
	}

	if len(parts) > 2 {
		at.subresource = parts[2]
	}

	return at, true
}

// object returns the address of the object: versions and subresources of it are the same.
func (a address) object() address {
	a.version, a.subresource, a.prefix = "", "", ""
	return a
}

// lists reports whether a list contains the object.
func (a address) lists(list address) bool {
	return a.host == list.host && a.group == list.group && a.resource == list.resource &&
		(list.namespace == "" || list.namespace == a.namespace)
}

// isReview reports whether a request asks something, as those for permissions, and stores nothing.
func (a address) isReview() bool {
	return a.group == "authorization.k8s.io" || a.group == "authentication.k8s.io"
}

func (a address) isEvent() bool { return a.resource == "events" }

func (a address) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: a.group, Resource: a.resource}
}

func (a address) groupVersion() string {
	return schema.GroupVersion{Group: a.group, Version: a.version}.String()
}

// url returns the URL of the object.
func (a address) url(of *url.URL) *url.URL {
	to := &url.URL{Scheme: of.Scheme, Host: of.Host, Path: a.prefix + "/api/" + a.version}
	if a.group != "" {
		to.Path = a.prefix + "/apis/" + a.group + "/" + a.version
	}

	if a.namespace != "" {
		to.Path += "/namespaces/" + a.namespace
	}

	to.Path += "/" + a.resource + "/" + a.name

	return to
}

// describe describes the object for people.
func (a address) describe(o *unstructured.Unstructured) string {
	kind := a.groupResource().String()
	if o != nil && o.GetKind() != "" {
		kind = o.GetKind()
	}

	if a.subresource != "" {
		kind += "/" + a.subresource
	}

	if a.namespace == "" {
		return kind + " " + a.name
	}

	return kind + " " + a.namespace + "/" + a.name
}

// describeResource describes the resource for people.
func (a address) describeResource() string {
	text := a.groupResource().String()
	if a.name != "" {
		text += " " + a.name
	}

	if a.namespace == "" {
		return text
	}

	return text + " in namespace " + a.namespace
}

func selectsLabels(selector string, o *unstructured.Unstructured) bool {
	parsed, err := labels.Parse(selector)
	return err == nil && parsed.Matches(labels.Set(o.GetLabels()))
}

func selectsFields(selector string, o *unstructured.Unstructured) bool {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return false
	}

	found := fields.Set{}

	for _, requirement := range parsed.Requirements() {
		value, _, _ := unstructured.NestedString(o.Object, strings.Split(requirement.Field, ".")...)
		found[requirement.Field] = value
	}

	return parsed.Matches(found)
}
