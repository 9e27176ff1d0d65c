package manifest_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/manifest"
)

func TestSetPaused(t *testing.T) {
	// manager returns a Deployment with the given metadata and spec, beside an object that stays.
	manager := func(metadata, spec string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n" +
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager" + metadata + "}\nspec: {" + spec + "}\n"
	}

	var (
		three = manager("", "replicas: 3")
		unset = manager("", "")
		none  = manager("", "replicas: 0")
		noted = func(replicas string) string {
			return ", annotations: {capstan.dev/paused-replicas: '" + replicas + "'}"
		}
		paused  = manager(noted("3"), "replicas: 0")
		paused1 = manager(noted("1"), "replicas: 0")
		paused0 = manager(noted("0"), "replicas: 0")
		forged  = manager(noted("7"), "replicas: 3")
	)

	for name, test := range map[string]struct {
		manifest string
		paused   bool
		want     string
	}{
		"pause":                              {three, true, paused},
		"pause what is paused":               {paused, true, paused},
		"pause without replicas":             {none, true, paused0},
		"pause what has the API's default":   {unset, true, paused1},
		"pause what only has the annotation": {forged, true, paused},
		"resume":                             {paused, false, three},
		"resume what runs":                   {three, false, three},
		"resume what has the API's default":  {unset, false, unset},
		"resume without replicas":            {paused0, false, none},
	} {
		t.Run(name, func(t *testing.T) {
			objects := decode(t, test.manifest)
			manifest.SetPaused(objects, test.paused)
			NewWithT(t).Expect(objects).To(Equal(decode(t, test.want)))
		})
	}
}
