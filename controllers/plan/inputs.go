package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/values"
)

// inputs returns what the release of the plan is created from. inManifests are the variables in the additional
// manifests. Of the resource's variables only those in use count: the
// release holds their values too, and the digests are stored beside them, so that these reveal nothing else.
func (p *Plan) inputs(
	provider v1alpha2.Provider, variables map[string]string, additional *manifest.Additional, inManifests []string,
	salt string,
) (v1alpha2.RevisionInputs, error) {
	inputs := v1alpha2.RevisionInputs{
		Source: storage.InputDigest(salt, []byte(p.Chart.annotation(chartgen.AnnotationContentID))),
	}

	if additional != nil && additional.Manifests != "" {
		inputs.Manifests = storage.InputDigest(salt, []byte(additional.Manifests))
	}

	if _, named := access.VariablesSecret(provider); !named {
		return inputs, nil
	}

	used := p.Chart.Schema.Used(variables)
	for _, name := range append(inManifests, values.ImagesVariable) {
		if value, set := variables[name]; set {
			used[name] = value
		}
	}

	content, err := json.Marshal(used) // sorted by key
	inputs.Variables = storage.InputDigest(salt, content)

	return inputs, err
}

// Kinds of the objects that inputs are read from.
const (
	KindSecret    = "Secret"
	KindConfigMap = "ConfigMap"
)

// InputKind returns the kind of the object that an input of the plan was read from; empty if it comes
// from elsewhere.
func (p *Plan) InputKind(input state.Difference) string {
	switch input {
	case state.DifferentVariables:
		return KindSecret
	case state.DifferentManifests:
		return KindConfigMap
	case state.DifferentSource:
		kind, _, isObject := strings.Cut(p.Chart.from.ID, " ")
		if isObject {
			return kind
		}
	}

	return ""
}

// Describe describes a difference between what a revision was created from and the plan, as the end of a
// sentence.
func (p *Plan) Describe(provider v1alpha2.Provider, difference state.Difference) string {
	switch difference {
	case state.DifferentVariables:
		secret, _ := access.VariablesSecret(provider)
		return fmt.Sprintf("Secret %s of %s has changed", secret.NamespacedName, secret.Field)
	case state.DifferentManifests:
		return "the ConfigMap of spec.additionalManifests has changed"
	case state.DifferentSource:
		if kind, name, isObject := strings.Cut(p.Chart.from.ID, " "); isObject {
			return fmt.Sprintf("%s %s/%s, the source of %s, has changed", kind, provider.GetNamespace(), name, p.Version)
		}

		return "the source of " + p.Version + " has changed"
	default:
		return "the operator or its configuration has changed"
	}
}
