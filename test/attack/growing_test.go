package attack

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// growingBombs are small as they are written, and large once expressions are replaced or patches are applied.
var growingBombs = []bomb{
	{tried: "50 keys with expressions, each below the one before", throw: func(a *arena) []v1alpha2.Provider {
		s := a.small("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: keys}\n" + nestedKeys(50))

		return a.one(s.by("installer"), s.configMap())
	}},
	{tried: "50 such keys in additional manifests", throw: func(a *arena) []v1alpha2.Provider {
		return a.adding("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keys}\n"+nestedKeys(50), "a")
	}},
	{tried: "A variable of 900 KiB in 1,990 places of additional manifests", throw: func(a *arena) []v1alpha2.Provider {
		var text strings.Builder

		text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: places}\ndata:\n")

		for n := range 1990 {
			fmt.Fprintf(&text, "  k%d: ${A}\n", n)
		}

		return a.adding(text.String(), strings.Repeat("x", 900<<10))
	}},
	{tried: "A patch that adds 400 KiB to each of 1,900 objects", throw: func(a *arena) []v1alpha2.Provider {
		return a.patched(func(spec *v1alpha2.ProviderSpec, patch string) {
			spec.Patches = []v1alpha2.Patch{{Patch: patch}}
		})
	}},
	{tried: "A manifest patch that adds 400 KiB to each of 1,900 objects", throw: func(a *arena) []v1alpha2.Provider {
		return a.patched(func(spec *v1alpha2.ProviderSpec, patch string) { spec.ManifestPatches = []string{patch} })
	}},
}

// nestedKeys returns a map whose only key has an expression, and a map of the same kind as its value, and so on.
func nestedKeys(depth int) string {
	var text strings.Builder

	text.WriteString("data:\n")

	for level := range depth {
		fmt.Fprintf(&text, "%*s${A:=a}:\n", level+1, "")
	}

	fmt.Fprintf(&text, "%*sx: y\n", depth+1, "")

	return text.String()
}

// adding returns a provider with additional manifests and the variable A.
func (a *arena) adding(manifests, value string) []v1alpha2.Provider {
	s := a.small("")
	more := &corev1.ConfigMap{ObjectMeta: named(tenant, a.name+"-more"), Data: map[string]string{"manifests": manifests}}
	variables := &corev1.Secret{ObjectMeta: named(tenant, a.name+"-variables")}
	variables.StringData = map[string]string{"A": value}

	p := s.by("installer")
	p.Spec.SecretName = variables.Name
	p.Spec.AdditionalManifests = &v1alpha2.ConfigMapReference{Name: more.Name}

	return a.one(p, s.configMap(), more, variables)
}

// patched returns a provider with 1,900 ConfigMaps and a patch for all of them.
func (a *arena) patched(set func(spec *v1alpha2.ProviderSpec, patch string)) []v1alpha2.Provider {
	s := a.small("")
	cm := s.compressed()
	cm.BinaryData[v1alpha2.ConfigMapComponentsKey] = compress([]byte(manyObjects(s, 1900)))

	p := s.by("installer")
	set(p.GetSpec(), "{kind: ConfigMap, data: {more: "+strings.Repeat("x", 400<<10)+"}}")

	return a.one(p, cm)
}
