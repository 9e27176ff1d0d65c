package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestArgoCDHealth runs the health check of config/argocd with the interpreter that Argo CD uses.
func TestArgoCDHealth(t *testing.T) {
	const (
		ready  = `{type: Ready, status: "True", message: all is well}`
		waits  = `{type: Ready, status: "False", message: webhooks do not answer}`
		paused = `{type: Paused, status: "True"}`
	)

	script := healthCheck(t)

	for name, test := range map[string]struct{ object, status, message string }{
		"not seen yet":            {`{status: {observedGeneration: -1}}`, "Progressing", "waiting for the operator"},
		"without a status":        {`{}`, "Progressing", "waiting for the operator"},
		"changed":                 {observedAt(1, ready), "Progressing", "waiting for the operator"},
		"ready":                   {observed(ready), "Healthy", "all is well"},
		"not ready":               {observed(waits), "Progressing", "webhooks do not answer"},
		"stalled":                 {observed(waits, `{type: Stalled, status: "True"}`), "Degraded", "webhooks do not answer"},
		"paused":                  {observed(paused, ready), "Suspended", "all is well"},
		"unpaused, not ready yet": {observed(paused, waits), "Progressing", "webhooks do not answer"},
		"suspended": {
			strings.Replace(observed(ready), "{", "{spec: {suspend: true}, ", 1), "Suspended", "all is well",
		},
		"suspended while it is not healthy": {
			strings.Replace(observed(waits), "{", "{spec: {suspend: true}, ", 1), "Suspended", "webhooks do not answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var object map[string]any
			g.Expect(yaml.Unmarshal([]byte(test.object), &object)).To(Succeed())
			object["metadata"] = map[string]any{"generation": 2.0}

			state := lua.NewState()
			defer state.Close()

			state.SetGlobal("obj", luaValue(state, object))
			g.Expect(state.DoString(script)).To(Succeed())

			health := state.Get(-1)
			g.Expect(state.GetField(health, "status").String()).To(Equal(test.status))
			g.Expect(state.GetField(health, "message").String()).To(Equal(test.message))
		})
	}
}

// observed returns a resource whose current generation has these conditions.
func observed(conditions ...string) string { return observedAt(2, conditions...) }

// observedAt returns a resource of generation 2 with conditions of the given generation.
func observedAt(generation int, conditions ...string) string {
	return fmt.Sprintf(`{status: {observedGeneration: %d, conditions: [%s]}}`, generation, strings.Join(conditions, ", "))
}

// healthCheck returns the Lua script of the health check, which all kinds have.
func healthCheck(t *testing.T) string {
	t.Helper()

	g := NewWithT(t)
	file, err := os.ReadFile(filepath.Join(root, "config/samples/argocd/health.yaml"))
	g.Expect(err).NotTo(HaveOccurred())

	var patch struct{ Data map[string]string }

	g.Expect(yaml.UnmarshalStrict(file, &patch)).To(Succeed())
	g.Expect(patch.Data).To(HaveLen(len(v1alpha2.ProviderTypes())))

	var script string

	for _, kind := range v1alpha2.ProviderTypes() {
		key := "resource.customizations.health." + v1alpha2.GroupVersion.Group + "_" + string(kind)
		g.Expect(patch.Data).To(HaveKey(key))
		g.Expect(script).To(BeElementOf("", patch.Data[key]))

		script = patch.Data[key]
	}

	return script
}

// luaValue converts a value of parsed JSON as Argo CD does.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, field := range value {
			table.RawSetString(key, luaValue(state, field))
		}

		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaValue(state, item))
		}

		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	}

	return lua.LNil
}
