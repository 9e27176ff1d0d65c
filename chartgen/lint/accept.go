package lint

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// AcceptedAnnotation is the annotation of metadata.yaml with a list of the findings that the provider's authors accept.
const AcceptedAnnotation = v1alpha2.Prefix + "/accepted-findings"

// maxAccepted limits the findings that a provider accepts, which the operator reads for each version.
const maxAccepted = 200

// inBaseline is the reason for which a finding of a baseline does not count.
const inBaseline = "part of the baseline"

// Acceptance selects findings that do not count: those of a rule that have what it sets.
type Acceptance struct {
	Rule string `json:"rule"`
	// Kind and Object are those of the finding. Empty ones match all.
	Kind   string `json:"kind,omitempty"`
	Object string `json:"object,omitempty"`
	// File is the name of the file, in any folder, and Message that of the finding. Empty ones match all.
	File    string `json:"file,omitempty"`
	Message string `json:"message,omitempty"`
	// Reason is why the findings do not count.
	Reason string `json:"reason,omitempty"`
}

// matches reports whether an acceptance selects a finding.
func (a Acceptance) matches(f Finding) bool {
	same := func(want, have string) bool { return want == "" || want == have }

	return a.Rule == f.Rule && same(a.Kind, f.Kind) && same(a.Object, f.Object) && same(a.Message, f.Message) &&
		(same(a.File, filepath.Base(f.File)) || isComponents(a.File) && f.File == bundle.ComponentsFile)
}

// isComponents reports whether a file may be that of the components, whose name a bundle does not know.
func isComponents(name string) bool { return strings.HasSuffix(name, "-"+bundle.ComponentsFile) }

func (a Acceptance) String() string {
	parts := []string{a.Rule, a.File, a.Kind, a.Object}

	return strings.Join(slices.DeleteFunc(parts, isEmpty), " ")
}

// Accept marks the findings that acceptances select, and returns the acceptances that select none.
func Accept(findings []Finding, acceptances []Acceptance) (unused []Acceptance) {
	for _, a := range acceptances {
		used := false

		for i := range findings {
			if a.matches(findings[i]) {
				used = true
				findings[i].Accepted = cmp.Or(findings[i].Accepted, a.Reason, inBaseline)
			}
		}

		if !used {
			unused = append(unused, a)
		}
	}

	return unused
}

// AcceptedBy returns what the metadata.yaml of a release accepts: nothing if it is not valid, which is a finding.
func AcceptedBy(metadata []byte) []Acceptance {
	m, err := bundle.ParseMetadata(metadata)
	if err != nil {
		return nil
	}

	acceptances, err := acceptedBy(m)
	if err != nil {
		return nil
	}

	return acceptances
}

func acceptedBy(m *bundle.Metadata) ([]Acceptance, error) {
	text := m.Annotations[AcceptedAnnotation]
	if _, err := limit.Document(text); err != nil {
		return nil, err
	}

	var acceptances []Acceptance
	if err := yaml.UnmarshalStrict([]byte(text), &acceptances); err != nil {
		return nil, fmt.Errorf("is not a list with the fields rule, file, kind, object, message and reason: %w", err)
	}

	if len(acceptances) > maxAccepted {
		return nil, fmt.Errorf("has %d entries, more than %d", len(acceptances), maxAccepted)
	}

	for _, a := range acceptances {
		if a.Rule == "" || a.Reason == "" {
			return nil, errors.New("has an entry without a rule or a reason")
		}
	}

	return acceptances, nil
}

// ParseFailOn returns the least level of findings that are a failure, as users name it.
func ParseFailOn(level string) (Level, error) {
	if l := Level(level); l == Error || l == Warning {
		return l, nil
	}

	return "", fmt.Errorf("unknown --fail-on %q; use %s or %s", level, Error, Warning)
}

// acceptedRule is about what metadata.yaml accepts. Folder.Lint reports entries that select nothing, because all files
// are known there.
var acceptedRule = Rule{
	Name:        "metadata/accepted-findings",
	Level:       Warning,
	Contract:    clusterctlContract + "#metadata-yaml",
	Requirement: "The annotation " + AcceptedAnnotation + " of metadata.yaml is a list of findings with a reason each.",
	Why:         "An entry that selects nothing may hide a finding later, and a list that is not valid accepts none.",
	Remedy:      "Correct or remove the entry.",
	check: func(p *parsedBundle, report reporter) {
		if p.metadataErr != nil {
			return
		}

		if _, err := acceptedBy(p.parsedMetadata); err != nil {
			report(location{file: bundle.MetadataFile}, "the annotation %s %s", AcceptedAnnotation, oneLine(err))
		}
	},
}

// oneLine returns the message of an error on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// ReadBaseline reads the findings of an earlier run from a file in the formats json or yaml. A finding of it does not
// count again. Those that a release had accepted then are left out.
func ReadBaseline(file string) ([]Acceptance, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	var baseline struct {
		Findings []struct {
			Acceptance

			Accepted string `json:"accepted"`
		} `json:"findings"`
	}
	if err := yaml.Unmarshal(data, &baseline); err != nil {
		return nil, fmt.Errorf("%s is no baseline, as --output json writes it: %s", file, oneLine(err))
	}

	if baseline.Findings == nil {
		return nil, fmt.Errorf("%s is no baseline, as --output json writes it: it has no findings", file)
	}

	acceptances := make([]Acceptance, 0, len(baseline.Findings))

	for _, f := range baseline.Findings {
		if f.Rule == "" {
			return nil, fmt.Errorf("%s is no baseline, as --output json writes it: a finding has no rule", file)
		}

		if f.Accepted == "" || f.Accepted == inBaseline {
			f.File = path.Base(filepath.ToSlash(f.File))
			if f.File == "." {
				f.File = ""
			}

			acceptances = append(acceptances, f.Acceptance)
		}
	}

	return acceptances, nil
}
