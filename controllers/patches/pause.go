package patches

import (
	"fmt"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Pausing changes the manifest of an earlier revision, which may have been rendered for a provider that
// was paused, or for one that was not: it scales the Deployments to zero if the provider is paused, and
// to their usual number of replicas if it is not. It is the post-renderer of a rollback.
type Pausing struct{ Paused bool }

// Digest identifies what Render does.
func (p Pausing) Digest() string { return fmt.Sprintf("paused=%t", p.Paused) }

// Render returns the manifest with the Deployments scaled. Everything else stays the same byte for byte.
func (p Pausing) Render(manifest []byte) ([]byte, error) {
	documents := read(manifest)

	change := resume
	if p.Paused {
		change = pause
	}

	if err := change(documents); err != nil {
		return nil, err
	}

	return join(documents, len(manifest))
}

// pause scales all Deployments to zero. An annotation keeps the number of replicas that each has
// otherwise.
func pause(documents []*document) error {
	return eachDeployment(documents, func(object *kyaml.RNode) (bool, error) {
		current, err := object.Pipe(kyaml.Lookup("spec", "replicas"))
		if err != nil {
			return false, err
		}

		replicas := "1" // the API server's default
		if current != nil {
			replicas = current.YNode().Value
		}

		if replicas == "0" && pausedReplicas(object) != "" {
			return false, nil
		}

		if err := object.PipeE(kyaml.SetAnnotation(v1alpha2.PausedReplicasAnnotation, replicas)); err != nil {
			return false, err
		}

		return true, setReplicas(object, "0")
	})
}

// resume undoes pause.
func resume(documents []*document) error {
	return eachDeployment(documents, func(object *kyaml.RNode) (bool, error) {
		replicas := pausedReplicas(object)
		if replicas == "" {
			return false, nil
		}

		if err := object.PipeE(kyaml.ClearAnnotation(v1alpha2.PausedReplicasAnnotation)); err != nil {
			return false, err
		}

		if err := kyaml.ClearEmptyAnnotations(object); err != nil {
			return false, err
		}

		return true, setReplicas(object, replicas)
	})
}

// eachDeployment calls change for every Deployment. It returns whether it has changed the object.
func eachDeployment(documents []*document, change func(*kyaml.RNode) (bool, error)) error {
	for _, d := range documents {
		group, _ := d.groupVersion()
		if d.deleted || group != "apps" || d.Kind != "Deployment" {
			continue
		}

		object, err := d.parse()
		if err != nil {
			return fmt.Errorf("change %s: %w", d, err)
		}

		changed, err := change(object)
		if err == nil && changed {
			err = d.set(object)
		}

		if err != nil {
			return fmt.Errorf("change %s: %w", d, err)
		}
	}

	return nil
}

// pausedReplicas returns the number of replicas that a paused Deployment has otherwise; empty if it is
// not paused.
func pausedReplicas(deployment *kyaml.RNode) string {
	return deployment.GetAnnotations()[v1alpha2.PausedReplicasAnnotation]
}

func setReplicas(deployment *kyaml.RNode, replicas string) error {
	number := kyaml.NewRNode(&kyaml.Node{Kind: kyaml.ScalarNode, Tag: kyaml.NodeTagInt, Value: replicas})

	return deployment.PipeE(
		kyaml.LookupCreate(kyaml.MappingNode, "spec"),
		kyaml.SetField("replicas", number),
	)
}
