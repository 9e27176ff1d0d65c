package patches

import (
	"fmt"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// pause scales every Deployment to no replicas. How many it has otherwise is kept in an annotation,
// for people to see.
func pause(documents []*document) error {
	for _, d := range documents {
		if group, _ := d.groupVersion(); d.deleted || group != "apps" || d.Kind != "Deployment" {
			continue
		}

		if err := d.pause(); err != nil {
			return fmt.Errorf("pause %s: %w", d, err)
		}
	}

	return nil
}

func (d *document) pause() error {
	object, err := d.parse()
	if err != nil {
		return err
	}

	replicas := "1" // what the API server makes of none

	if node, err := object.Pipe(kyaml.Lookup("spec", "replicas")); err != nil {
		return err
	} else if node != nil {
		replicas = node.YNode().Value
	}

	if err := object.PipeE(kyaml.SetAnnotation(v1alpha2.PausedReplicasAnnotation, replicas)); err != nil {
		return err
	}

	if err := object.PipeE(
		kyaml.LookupCreate(kyaml.MappingNode, "spec"),
		kyaml.SetField("replicas", kyaml.NewScalarRNode("0")),
	); err != nil {
		return err
	}

	return d.set(object)
}
