package values

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// Flag is a flag, or a feature gate, that a container gets although it is not published with it. A container stops at
// its start if it has no such flag.
type Flag struct {
	// Name without dashes; of a feature gate, as feature-gates=NAME.
	Name string
	// Field of the resource that sets it.
	Field string

	Deployment, Container string
	// Similar is what the container has with almost the same name; empty for none.
	Similar string
}

func (f Flag) String() string {
	hint := ""
	if f.Similar != "" {
		hint = "; did you mean " + f.Similar + "?"
	}

	return fmt.Sprintf("%s sets --%s, which container %s of Deployment %s is not published with, and may not start "+
		"with%s", f.Field, f.Name, f.Container, f.Deployment, hint)
}

// gatesFlag is the flag with the feature gates of a manager.
const gatesFlag = "feature-gates"

// setsOfCommonFlags are flags of Cluster API's library for managers, of newer and older versions. A manager that is
// published with one of them has all common ones, too.
var setsOfCommonFlags = []string{"insecure-diagnostics", "metrics-bind-addr"}

// commonFlags are those of that library that no field sets.
var commonFlags = []string{"logging-format", "tls-cipher-suites", "tls-min-version", "watch-filter"}

// doubts are the flags that a container gets and may not have.
type doubts struct {
	deployment, container string
	// flags are the names of those that the container has for certain, sorted.
	flags []string
	// gates are the feature gates that it is published with.
	gates []string

	found []Flag
}

// newDoubts returns no doubts about a container of a Deployment yet.
func (s *Schema) newDoubts(deployment, container string) *doubts {
	d := &doubts{deployment: deployment, container: container}

	for _, c := range bundle.Containers(map[string]any{"kind": "Deployment", "spec": s.published[deployment].Spec}) {
		if c["name"] != container {
			continue
		}

		for _, part := range []string{"command", "args"} {
			words, _ := c[part].([]any)
			for _, word := range words {
				text, _ := word.(string)
				d.publish(text)
			}
		}
	}

	slices.Sort(d.flags)
	d.flags = slices.Compact(d.flags)

	return d
}

// publish adds an argument that the container is published with.
func (d *doubts) publish(arg string) {
	if !strings.HasPrefix(arg, "-") {
		return
	}

	name, value, _ := strings.Cut(trimDashes(arg), "=")
	d.flags = append(d.flags, name)

	if name != gatesFlag {
		return
	}

	for pair := range strings.SplitSeq(value, ",") {
		gate, _, _ := strings.Cut(pair, "=")
		d.gates = append(d.gates, strings.TrimSpace(gate))
	}
}

// usesLibrary reports whether the container is a manager with Cluster API's library.
func (d *doubts) usesLibrary() bool {
	return slices.ContainsFunc(setsOfCommonFlags, func(name string) bool { return slices.Contains(d.flags, name) })
}

// doubtFlag records that the container may not have a flag that a field sets.
func (d *doubts) doubtFlag(field, name string) {
	has := d.flags

	if d.usesLibrary() {
		has = slices.Concat(has, commonFlags)

		for _, flag := range managerFlags {
			if flag.common {
				has = append(has, flag.names[0])
			}
		}
	}

	d.doubt(field, "", name, has)
}

// doubtGate records that the container may not have a feature gate that a field sets.
func (d *doubts) doubtGate(field, gate string) {
	if !slices.Contains(d.flags, gatesFlag) {
		d.doubtFlag(field, gatesFlag)
		return
	}

	d.doubt(field, gatesFlag+"=", gate, d.gates)
}

// doubt records what the container may not have, unless it has it, or that was recorded.
func (d *doubts) doubt(field, prefix, name string, has []string) {
	isFound := slices.ContainsFunc(d.found, func(f Flag) bool { return f.Name == prefix+name })
	if isFound || slices.Contains(has, name) {
		return
	}

	slices.Sort(has)
	d.found = append(d.found, Flag{
		Name: prefix + name, Field: field, Deployment: d.deployment, Container: d.container,
		Similar: similarFlag(name, has),
	})
}

// similarFlag returns the flag with the most similar name. What flags for the concurrency of a controller have in
// common does not count.
func similarFlag(name string, flags []string) string {
	kind, isConcurrency := strings.CutSuffix(name, concurrencySuffix)
	if !isConcurrency {
		return MostSimilar(name, flags)
	}

	var kinds []string

	for _, flag := range flags {
		if other, is := strings.CutSuffix(flag, concurrencySuffix); is {
			kinds = append(kinds, other)
		}
	}

	if similar := MostSimilar(kind, kinds); similar != "" {
		return similar + concurrencySuffix
	}

	return ""
}

// doubtedArgs returns the arguments in a customization that a container may not have. With a command of the user's,
// nothing is known.
func (s *Schema) doubtedArgs(c customization, spec v1alpha2.ContainerSpec) []Flag {
	if len(spec.Command) > 0 {
		return nil
	}

	d := s.newDoubts(c.name, spec.Name)

	for arg := range sorted(spec.Args) {
		if name := trimDashes(arg); name != "namespace" { // which may be ignored
			d.doubtFlag(fmt.Sprintf("%sdeployment.containers[%s].args[%s]", c.field, spec.Name, arg), name)
		}
	}

	return d.found
}
