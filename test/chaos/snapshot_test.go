package chaos

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/test/model"
)

// observer reads what can be seen of the provider.
type observer struct {
	client client.Client
	// contents of revisions, which do not change.
	contents map[types.UID]model.Content
}

// snapshot returns what can be seen of the provider.
func (o *observer) snapshot(ctx context.Context) (model.Snapshot, error) {
	snapshot := model.Snapshot{Now: time.Now()}

	// The stored versions are read first: what is stored later is no reason to refuse a revision.
	definition := &apiextensionsv1.CustomResourceDefinition{}

	err := o.client.Get(ctx, client.ObjectKey{Name: crd}, definition)
	if client.IgnoreNotFound(err) != nil {
		return snapshot, err
	}

	if err == nil {
		snapshot.Stored = storedVersions(definition)
	}

	if snapshot.Records, err = o.records(ctx); err != nil {
		return snapshot, err
	}

	if snapshot.Objects, err = o.objects(ctx); err != nil {
		return snapshot, err
	}

	provider := &v1alpha2.InfrastructureProvider{}
	if err := o.client.Get(ctx, key, provider); client.IgnoreNotFound(err) != nil {
		return snapshot, err
	}

	if contract := provider.Status.Contract; contract != nil {
		snapshot.Contract = *contract
	}

	recall(provider, snapshot.Records)

	return snapshot, nil
}

// recall completes the revisions of records by what the status knows of them: also that one has failed, just now, if
// its record does not say so yet.
func recall(provider v1alpha2.Provider, records []model.Record) {
	history := state.History{}
	for _, record := range records {
		history.Revisions = append(history.Revisions, record.Revision)
	}

	history = history.Show(provider.GetStatus())

	for i := range records {
		revision, exists := history.Find(records[i].Number)
		if !exists {
			continue
		}

		if revision.Status == v1alpha2.RevisionFailed && records[i].Status != v1alpha2.RevisionFailed {
			revision.LastTransitionTime = metav1.Now()
		}

		records[i].Revision = revision
	}
}

// key is that of the resource.
var key = client.ObjectKey{Namespace: namespace, Name: name}

// storedVersions returns the versions that objects may be stored in, the storage version first.
func storedVersions(definition *apiextensionsv1.CustomResourceDefinition) []string {
	var stored []string

	for _, version := range definition.Spec.Versions {
		if version.Storage {
			stored = append(stored, version.Name)
		}
	}

	for _, version := range definition.Status.StoredVersions {
		if !slices.Contains(stored, version) {
			stored = append(stored, version)
		}
	}

	return stored
}

// records returns the revisions of the release, newest first.
func (o *observer) records(ctx context.Context) ([]model.Record, error) {
	secrets := &corev1.SecretList{}
	if err := o.client.List(ctx, secrets, client.InNamespace(namespace),
		client.MatchingLabels{"owner": "helm", "name": release}); err != nil {
		return nil, err
	}

	var records []model.Record

	for i := range secrets.Items {
		revision, ok := storage.RevisionOf(&secrets.Items[i].ObjectMeta)
		if !ok {
			return nil, fmt.Errorf("Secret %s is not a revision", secrets.Items[i].Name)
		}

		content, err := o.content(&secrets.Items[i], revision.Number)
		if err != nil {
			return nil, err
		}

		records = append(records, model.Record{Revision: revision, Content: content})
	}

	slices.SortFunc(records, func(a, b model.Record) int { return cmp.Compare(b.Number, a.Number) })

	return records, nil
}

// content returns what a revision was created from, by its manifest.
func (o *observer) content(secret *corev1.Secret, number int) (model.Content, error) {
	if content, known := o.contents[secret.UID]; known {
		return content, nil
	}

	decoded, err := storage.Decode(secret, release, number)
	if err != nil {
		return model.Content{}, err
	}

	objects, err := manifest.Decode(decoded.Manifest)
	if err != nil {
		return model.Content{}, err
	}

	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}

		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			return model.Content{}, err
		}

		seen, err := asObject(deployment)
		content := model.Content{
			Wanted: model.Wanted{Version: seen.Version, Paused: seen.Replicas == 0},
			Secret: seen.Secret, Registry: seen.Registry,
		}
		o.contents[secret.UID] = content

		return content, err
	}

	return model.Content{}, fmt.Errorf("Secret %s has no Deployment", secret.Name)
}

// image is that of the manager, with the registry's number and the version.
var image = regexp.MustCompile(`^registry-(\d)\.example\.com/[a-z-]+:(v[0-9.]+)$`)

// asObject returns what the model knows of the manager's Deployment.
func asObject(d *appsv1.Deployment) (model.Object, error) {
	container := d.Spec.Template.Spec.Containers[0]

	parts := image.FindStringSubmatch(container.Image)
	if parts == nil {
		return model.Object{}, fmt.Errorf("the image %s is unknown", container.Image)
	}

	registry, err := strconv.Atoi(parts[1])
	if err != nil {
		return model.Object{}, err
	}

	level := 0

	for _, arg := range container.Args {
		if value, found := strings.CutPrefix(arg, "--level="); found {
			if level, err = strconv.Atoi(value); err != nil {
				return model.Object{}, err
			}
		}
	}

	replicas := 1
	if d.Spec.Replicas != nil {
		replicas = int(*d.Spec.Replicas)
	}

	return model.Object{Version: parts[2], Replicas: replicas, Secret: level, Registry: registry}, nil
}

// objects returns the objects of the provider.
func (o *observer) objects(ctx context.Context) (map[string]model.Object, error) {
	objects := map[string]model.Object{}

	deployments := &appsv1.DeploymentList{}
	if err := o.client.List(ctx, deployments, client.InNamespace(namespace)); err != nil {
		return nil, err
	}

	for i := range deployments.Items {
		seen, err := asObject(&deployments.Items[i])
		if err != nil {
			return nil, err
		}

		objects[model.Manager] = seen
	}

	extras := &corev1.ConfigMapList{}
	if err := o.client.List(ctx, extras, client.InNamespace(namespace)); err != nil {
		return nil, err
	}

	for _, extra := range extras.Items {
		if short, found := strings.CutPrefix(extra.Name, "chaos-"); found {
			objects[short] = model.Object{Version: extra.Data["version"]}
		}
	}

	return objects, nil
}
