package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"strings"
)

// component is an entry of a CycloneDX 1.6 bill of materials.
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

// bom is a CycloneDX 1.6 bill of materials.
type bom struct {
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

// sbom returns the bill of materials of a program: the modules it was linked from, according to the
// build information in it.
func sbom(program, name, version string, modules []module) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %s: %w", program, err)
	}

	ids := map[string][]licenseChoice{}

	for _, m := range modules {
		for _, id := range m.IDs {
			ids[m.Path] = append(ids[m.Path], licenseChoice{licenseID{id}})
		}
	}

	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	all := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Components: []component{
		{
			Type:    "platform",
			Name:    "go",
			Version: goVersion,
			PURL:    "pkg:golang/std@" + goVersion,
		},
	}}

	all.Metadata.Component = component{
		Type:     "application",
		Name:     name,
		Version:  version,
		PURL:     "pkg:golang/" + info.Main.Path + "@" + version,
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
