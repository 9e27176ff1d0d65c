package charts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/signature"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// resource is the resource of a provider in a file.
type resource struct {
	v1alpha2.Provider

	file string
	// secrets are those in the file, by namespace and name.
	secrets map[string]*corev1.Secret
}

// readResources reads the providers in a file of resources.
func readResources(file string) ([]*resource, error) {
	data, err := cli.ReadFile(file)
	if err != nil {
		return nil, err
	}

	documents, err := splitDocuments(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	var found []*resource

	secrets := map[string]*corev1.Secret{}

	for _, document := range documents {
		object := metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(document, &object); err != nil {
			return nil, fmt.Errorf("%s: %s", file, bundle.YAMLReason(err))
		}

		group := object.GroupVersionKind().Group
		provider := v1alpha2.ProviderType(object.Kind).New()

		switch {
		case group == v1alpha2.GroupVersion.Group && provider != nil:
			err = json.Unmarshal(document, provider)
			found = append(found, &resource{Provider: provider, file: file, secrets: secrets})
		case group == "" && object.Kind == "Secret":
			secret := &corev1.Secret{}
			err = json.Unmarshal(document, secret)
			secrets[object.Namespace+"/"+object.Name] = secret
		}

		if err != nil {
			return nil, fmt.Errorf("%s: %s %s: %s", file, object.Kind, object.Name, bundle.YAMLReason(err))
		}
	}

	if len(found) == 0 {
		return nil, fmt.Errorf("%s contains no provider resource of %s", file, v1alpha2.GroupVersion.Group)
	}

	return found, nil
}

// splitDocuments returns the objects of a file in JSON, and instead of a List its items. Unlike that of Kubernetes, the
// decoder drops nothing that follows the end of a document.
func splitDocuments(data []byte) ([][]byte, error) {
	var all [][]byte

	for decoder := yamlv3.NewDecoder(bytes.NewReader(data)); ; {
		var node yamlv3.Node

		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return all, nil
		}

		if err != nil && strings.Contains(err.Error(), "<document start>") {
			err = fmt.Errorf("%w; begin what follows the end of a document with ---", err)
		}

		if err != nil {
			return nil, err
		}

		text, err := yamlv3.Marshal(&node)
		if err != nil {
			return nil, err
		}

		document, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, err
		}

		list := struct {
			Items []json.RawMessage `json:"items"`
		}{}

		switch {
		case string(document) == "null":
		case json.Unmarshal(document, &list) == nil && list.Items != nil:
			for _, item := range list.Items {
				all = append(all, item)
			}
		default:
			all = append(all, document)
		}
	}
}

// source returns the source that the resource names. Registries and servers are accessed as for all that is mirrored,
// not with the Secrets of the resource.
func (r *resource) source(client *oci.Client, known *catalog.Catalog) (*source.Source, error) {
	config := r.GetSpec().FetchConfig
	identity := source.Provider(r.ProviderType(), r.GetName())

	options := source.OCIOptions{
		Digest: config.Digest,
		Access: func(context.Context) (source.Access, error) { return r.access(client) },
	}

	switch url := cmp.Or(config.URL, config.HTTP); {
	case config.OCI != "":
		return source.NewArtifact(config.OCI, identity, options)
	case config.Image != "":
		return source.NewImage(config.Image, identity, options)
	case url != "":
		from, err := source.NewWebsite(url, identity, publicTokens(known))
		if err != nil {
			return nil, err
		}

		from.Digest = config.Digest

		return from, nil
	}

	return nil, errors.New("spec.fetchConfig names ConfigMaps or a folder, which only the operator can read; " +
		"set --installed, or --source with a copy of the folder")
}

// access returns what a registry is read with, and how its content is verified.
func (r *resource) access(client *oci.Client) (source.Access, error) {
	verify := r.GetSpec().FetchConfig.Verify
	if verify == nil {
		return source.Access{Client: client}, nil
	}

	name := verify.SecretRef.Name

	secret, exists := r.secrets[r.GetNamespace()+"/"+name]
	if !exists {
		return source.Access{}, fmt.Errorf("spec.fetchConfig.verify needs the keys in Secret %s, which is not in %s; "+
			"add it to the file", name, r.file)
	}

	policy := signature.Policy{Keys: map[string][]byte{}, KeysFrom: "Secret " + name}
	for key, value := range secret.Data {
		policy.Keys[key] = value
	}

	for key, value := range secret.StringData {
		policy.Keys[key] = []byte(value)
	}

	verifier, err := policy.Verifier(client)
	if err != nil {
		return source.Access{}, fmt.Errorf("spec.fetchConfig.verify, Secret %s: %w", name, err)
	}

	return source.Access{Client: client, Verify: verifier.Verify}, nil
}
