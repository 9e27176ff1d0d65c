package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"strings"
)

// component is an entry of a bill of materials in the format CycloneDX 1.6.
type component struct {
	Type     string          `json:"type"`
	Ref      string          `json:"bom-ref,omitempty"`
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	PURL     string          `json:"purl,omitempty"`
	Licenses []licenseChoice `json:"licenses,omitempty"`
}

type licenseChoice struct {
	License licenseID `json:"license"`
}

type licenseID struct {
	ID string `json:"id"`
}

// bom is a bill of materials.
type bom struct {
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

// billOfMaterials lists the modules that a program was really linked from, as the linker has noted
// them in it.
func billOfMaterials(program, name, version string, licensed []module) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read what %s was built from: %w", program, err)
	}

	ids := map[string][]licenseChoice{}

	for _, m := range licensed {
		for _, id := range m.IDs {
			ids[m.Path] = append(ids[m.Path], licenseChoice{licenseID{id}})
		}
	}

	all := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Components: []component{
		{
			Type:    "platform",
			Name:    "go",
			Version: strings.TrimPrefix(info.GoVersion, "go"),
			PURL:    "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
		},
	}}

	all.Metadata.Component = component{
		Type: "application", Name: name, Version: version, PURL: "pkg:golang/" + info.Main.Path + "@" + version,
		Licenses: []licenseChoice{{licenseID{"Apache-2.0"}}},
	}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}

		purl := "pkg:golang/" + dependency.Path + "@" + dependency.Version
		all.Components = append(all.Components, component{
			Type:     "library",
			Ref:      purl,
			Name:     dependency.Path,
			Version:  dependency.Version,
			PURL:     purl,
			Licenses: ids[dependency.Path],
		})
	}

	return json.MarshalIndent(all, "", "  ")
}
