package lint

import (
	"io"
	"net/url"
	"path/filepath"
	"slices"
)

// The subset of SARIF 2.1.0 that a list of findings needs. The names are those of the standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifRule struct {
		ID                   string    `json:"id"`
		ShortDescription     sarifText `json:"shortDescription"`
		FullDescription      sarifText `json:"fullDescription"`
		Help                 sarifText `json:"help"`
		HelpURI              string    `json:"helpUri"`
		DefaultConfiguration struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
		// Suppressions say why a result does not count.
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		PhysicalLocation *sarifPhysicalLocation `json:"physicalLocation,omitempty"`
		LogicalLocations []sarifLogicalLocation `json:"logicalLocations,omitempty"`
	}
	sarifPhysicalLocation struct {
		ArtifactLocation struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogicalLocation struct {
		Name               string `json:"name"`
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

var sarifLevels = map[Level]string{Error: "error", Warning: "warning", Info: "note"}

func writeSARIF(w io.Writer, rules []Rule, findings []Finding) error {
	run := sarifRun{Results: []sarifResult{}}

	run.Tool.Driver = sarifDriver{Name: "capstan", InformationURI: "https://github.com/capstan-project/capstan"}
	for _, rule := range rules {
		r := sarifRule{
			ID:               rule.Name,
			HelpURI:          rule.Contract,
			ShortDescription: sarifText{rule.Requirement},
			FullDescription:  sarifText{rule.Why},
			Help:             sarifText{rule.Remedy},
		}
		r.DefaultConfiguration.Level = sarifLevels[rule.Level]
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, r)
	}

	for _, f := range findings {
		result := sarifResult{
			RuleID:    f.Rule,
			RuleIndex: slices.IndexFunc(rules, func(rule Rule) bool { return rule.Name == f.Rule }),
			Level:     sarifLevels[f.Level],
			Message:   sarifText{f.sentence()},
			Locations: []sarifLocation{f.sarifLocation()},
		}
		if f.Accepted != "" {
			result.Suppressions = []sarifSuppression{{"external", f.Accepted}}
		}

		run.Results = append(run.Results, result)
	}

	return writeIndented(w, sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{run},
	})
}

func (f Finding) sarifLocation() sarifLocation {
	var l sarifLocation

	if f.File != "" {
		l.PhysicalLocation = f.sarifPhysicalLocation()
	}

	if f.Object != "" {
		l.LogicalLocations = []sarifLogicalLocation{{f.Object, f.Kind + "/" + f.Object}}
	}

	return l
}

func (f Finding) sarifPhysicalLocation() *sarifPhysicalLocation {
	uri := url.URL{Path: filepath.ToSlash(f.File)}
	if filepath.IsAbs(f.File) {
		uri.Scheme = "file"
	}

	l := &sarifPhysicalLocation{}
	l.ArtifactLocation.URI = uri.String()

	if f.Line > 0 {
		l.Region = &sarifRegion{f.Line}
	}

	return l
}
