package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// SetFields returns a resource with changed fields, as PATH=VALUE in the format of Helm's --set.
func SetFields(p v1alpha2.Provider, settings []string) (v1alpha2.Provider, error) {
	if len(settings) == 0 {
		return p, nil
	}

	content, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}

	fields := map[string]any{}
	if err := json.Unmarshal(content, &fields); err != nil {
		return nil, err
	}

	for _, setting := range settings {
		if !strings.HasPrefix(setting, "spec.") && !strings.HasPrefix(setting, "metadata.annotations.") {
			return nil, fmt.Errorf("--set %s: only fields below spec and metadata.annotations can be changed", setting)
		}

		if err := strvals.ParseInto(setting, fields); err != nil {
			return nil, fmt.Errorf("--set %s: %w", setting, err)
		}
	}

	if content, err = yaml.Marshal(fields); err != nil {
		return nil, err
	}

	changed := p.ProviderType().New()
	if err := yaml.UnmarshalStrict(content, changed); err != nil {
		return nil, fmt.Errorf("--set: %w", err)
	}

	return changed, nil
}
