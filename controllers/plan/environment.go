package plan

import (
	"maps"
	"os"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Environment holds variables that providers get from the operator's environment, by name.
type Environment map[string]string

// ReadEnvironment returns the values of the named variables that are set in the environment of the process.
func ReadEnvironment(names []string) Environment {
	environment := Environment{}

	for _, name := range names {
		if value, set := os.LookupEnv(name); set {
			environment[name] = value
		}
	}

	return environment
}

// withEnvironment adds the operator's variables to those of the resource, which take precedence. A
// resource that runs as a ServiceAccount does not get them: its author could read them in components of
// their own, and has fewer permissions than the operator.
func (p *Planner) withEnvironment(provider v1alpha2.Provider, own map[string]string) map[string]string {
	if _, named := p.Readers.Account(provider); named {
		return own
	}

	variables := map[string]string{}
	maps.Copy(variables, p.Environment)
	maps.Copy(variables, own)

	return variables
}
