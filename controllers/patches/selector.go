package patches

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// selector says which objects a patch is for: those that have all that is not empty here.
type selector struct {
	apiVersion, group, version, kind, name, namespace string
	labels                                            labels.Selector
}

func (s selector) matches(id identity) bool {
	group, version := id.groupVersion()
	is := func(wanted, has string) bool { return wanted == "" || wanted == has }

	return is(s.apiVersion, id.APIVersion) && is(s.group, group) && is(s.version, version) && is(s.kind, id.Kind) &&
		is(s.name, id.Metadata.Name) && is(s.namespace, id.Metadata.Namespace) &&
		(s.labels == nil || s.labels.Matches(labels.Set(id.Metadata.Labels)))
}

func (s selector) String() string {
	var parts []string

	for _, part := range [][2]string{
		{"apiVersion", s.apiVersion}, {"group", s.group}, {"version", s.version}, {"kind", s.kind}, {"name", s.name}, {"namespace", s.namespace},
	} {
		if part[1] != "" {
			parts = append(parts, part[0]+" "+part[1])
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

// maxNamed is how many objects a message names.
const maxNamed = 10

// missed says that there is no such object, and which there are.
func (s selector) missed(documents []*document) string {
	if s.kind == "CustomResourceDefinition" {
		return "CustomResourceDefinitions cannot be patched: they are no part of the release"
	}

	var named []string

	for _, d := range documents {
		if d.Kind != "" && !d.deleted && (s.kind == "" || s.kind == d.Kind) {
			named = append(named, d.String())
		}
	}

	if len(named) > maxNamed {
		named = append(named[:maxNamed], fmt.Sprintf("%d more", len(named)-maxNamed))
	}

	there := "none"
	if len(named) > 0 {
		there = strings.Join(named, ", ")
	}

	return fmt.Sprintf("it matches no object; it is for %s; of the kind there are: %s", s, there)
}
