package patches

import (
	"fmt"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// pause scales all Deployments to zero. An annotation keeps the number of replicas that each has
// otherwise, as information for users.
func pause(documents []*document) error {
	for _, d := range documents {
		group, _ := d.groupVersion()
		if d.deleted || group != "apps" || d.Kind != "Deployment" {
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

	current, err := object.Pipe(kyaml.Lookup("spec", "replicas"))
	if err != nil {
		return err
	}

	replicas := "1" // the API server's default
	if current != nil {
		replicas = current.YNode().Value
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
