package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/manifest"
)

func TestRefusedPatches(t *testing.T) {
	onDeployment := &v1alpha2.PatchTarget{Kind: "Deployment"}
	onSettings := &v1alpha2.PatchTarget{Kind: "Settings"}

	for name, c := range map[string]struct {
		patch  string
		target *v1alpha2.PatchTarget
		parts  []string
	}{
		"not YAML": {
			patch: "a: [b",
			parts: []string{"spec.patches[0]: not YAML"},
		},
		"many values": {
			patch: "a: [" + strings.Repeat("1,", 110000) + "]",
			parts: []string{"spec.patches[0]: not YAML: the patch has more than 100000 values"},
		},
		"copies of copies": {
			patch: copies(40),
			parts: []string{"spec.patches[0]", "accumulated"},
		},
		"deep maps": {
			patch: "spec: " + strings.Repeat("{a: ", 120) + "b" + strings.Repeat("}", 120),
			parts: []string{"more than 100 levels"},
		},
		"a word": {
			patch: "word",
			parts: []string{"spec.patches[0]: neither a list of operations", "nor a map of fields"},
		},
		"only a comment": {
			patch: "# nothing",
			parts: []string{"spec.patches[0]: neither"},
		},
		"two documents": {
			patch: "---\na: b\n---\nc: d\n",
			parts: []string{"spec.patches[0]: several documents"},
		},
		"an empty patch": {
			parts: []string{"spec.patches[0]: neither"},
		},
		"an unknown operation": {
			patch: "[{op: remove, path: /a}, {op: set, path: /b}]",
			parts: []string{"operation 2: op must be one of add, copy"},
		},
		"an operation that is not a map": {
			patch: "[remove]",
			parts: []string{"operation 1: op must be one of add, copy"},
		},
		"no path": {
			patch: "[{op: remove}]",
			parts: []string{"operation 1: path must begin with /"},
		},
		"no value": {
			patch: "[{op: add, path: /a}]",
			parts: []string{"operation 1: add needs a value"},
		},
		"no source": {
			patch: "[{op: move, path: /a}]",
			parts: []string{"operation 1: move needs a from"},
		},
		"labels that are a list": {
			patch:  "metadata: {labels: [a]}",
			target: onSettings,
			parts:  []string{"cannot be applied to Settings tiny/settings: in the result, the field metadata.labels is a list"},
		},
		"an invalid label selector": {
			patch:  "a: b",
			target: &v1alpha2.PatchTarget{LabelSelector: "a==,"},
			parts:  []string{"spec.patches[0].target.labelSelector"},
		},
		"a path that does not exist": {
			patch:  "[{op: remove, path: /spec/nope}]",
			target: onDeployment,
			parts:  []string{"spec.patches[0]: cannot be applied to Deployment tiny/manager", "nope"},
		},
		"a number instead of a text": {
			patch:  "spec: {template: {spec: {containers: [{name: manager, env: [{name: B, value: 1}]}]}}}",
			target: onDeployment,
			parts: []string{
				"spec.patches[0]: cannot be applied to Deployment tiny/manager: in the result, the field " +
					"spec.template.spec.containers.env.value is a number, expected a text",
			},
		},
		"an element without its key": {
			patch:  "spec: {template: {spec: {containers: [{image: x}]}}}",
			target: onDeployment,
			parts:  []string{"an element of a list has no name"},
		},
		"an element whose key is no text": {
			patch:  "spec: {template: {spec: {containers: [{name: [a]}]}}}",
			target: onDeployment,
			parts:  []string{"cannot be applied to Deployment tiny/manager: it is not a valid strategic merge patch"},
		},
		"another directive": {
			patch: "$patch: replace",
			parts: []string{"spec.patches[0]: $patch of a whole object must be delete"},
		},
		"the name is removed": {
			patch:  "[{op: remove, path: /metadata/name}]",
			target: onDeployment,
			parts:  []string{"spec.patches[0]: cannot be applied to Deployment tiny/", "the result is not an object"},
		},
		"a map instead of a list": {
			patch:  "spec: {template: {spec: {containers: {name: manager}}}}",
			target: onDeployment,
			parts: []string{
				"spec.patches[0]: cannot be applied to Deployment tiny/manager: in the result, the field " +
					"spec.template.spec.containers is a map, expected a list",
			},
		},
		"no such object": {
			patch:  "a: b",
			target: &v1alpha2.PatchTarget{Kind: "Deployment", Name: "nope"},
			parts: []string{
				"it matches no object; its target is kind Deployment, name nope; " +
					"objects of that kind: Deployment tiny/manager",
			},
		},
		"no such kind": {
			patch:  "a: b",
			target: &v1alpha2.PatchTarget{Kind: "Nope"},
			parts:  []string{"its target is kind Nope", "objects of that kind: none"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, manifest.Input{Patches: []v1alpha2.Patch{{Patch: c.patch, Target: c.target}}}, c.parts...)
		})
	}

	t.Run("the second patch", func(t *testing.T) {
		expectRefusal(t, manifest.Input{Patches: []v1alpha2.Patch{
			{Patch: "metadata: {labels: {a: b}}"},
			{Patch: "a: [b"},
		}}, "spec.patches[1]: ")
	})
}

func TestRefusedManifestPatches(t *testing.T) {
	for name, c := range map[string]struct {
		patch string
		parts []string
	}{
		"not YAML":       {"a: [b", []string{"spec.manifestPatches[0]: not YAML"}},
		"without a kind": {"metadata: {name: manager}", []string{"spec.manifestPatches[0]: kind is missing"}},
		"a list": {
			"[{op: remove, path: /a}]", []string{"spec.manifestPatches[0]: not a map", "spec.patches"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, manifest.Input{ManifestPatches: []string{c.patch}}, c.parts...)
		})
	}
}

// copies returns a JSON patch that doubles an object as often.
func copies(n int) string {
	var patch strings.Builder
	for i := range n {
		fmt.Fprintf(&patch, "- {op: copy, from: /metadata, path: /metadata/a%d}\n", i)
	}

	return patch.String()
}

// expectRefusal checks that the input is refused with a message that has the parts.
func expectRefusal(t *testing.T, in manifest.Input, parts ...string) {
	t.Helper()

	g := NewWithT(t)
	_, err := render(t, in)

	g.Expect(err).To(HaveField("Reason", v1alpha2.ComponentsPatchErrorReason))

	for _, part := range parts {
		g.Expect(err).To(MatchError(ContainSubstring(part)))
	}
}

func TestMessagesQuoteNoContent(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {password: aHVudGVyMg==}\n"

	for _, patch := range []string{
		"data: {password: {hunter2: b}}",
		"data: [hunter2]",
		"metadata: {labels: [hunter2]}",
		"[{op: test, path: /data/password, value: hunter2}]",
		"[{op: add, path: /data/password/x, value: hunter2}]",
	} {
		g := NewWithT(t)
		_, err := renderOf(t, manifest.Input{
			Patches: []v1alpha2.Patch{{Patch: patch, Target: &v1alpha2.PatchTarget{Kind: "Secret"}}},
		}, secret)
		g.Expect(err).To(MatchError(ContainSubstring("cannot be applied to Secret s")), patch)
		g.Expect(err).NotTo(MatchError(ContainSubstring("aHVudGVyMg")), patch)
		g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")), patch)
	}
}
