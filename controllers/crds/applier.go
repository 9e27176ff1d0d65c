// Package crds applies a provider's CustomResourceDefinitions beside its Helm release. CRDs are applied and upgraded by
// server-side apply, never rolled back and never deleted; only those that changed are sent.
package crds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// digestAnnotation holds, on a CRD, the digest of what was last applied to it.
const digestAnnotation = v1alpha2.Prefix + "/crd-digest"

// digestVersion is part of each digest; raise it when prepare changes what it makes of the same file.
const digestVersion = "1"

// concurrency bounds the requests in flight. More does not help: the API server then waits for its own processors.
const concurrency = 16

// annotationInjectCA is where cert-manager reads whose certificate to trust.
const annotationInjectCA = "cert-manager.io/inject-ca-from"

// Applier applies CRDs.
type Applier struct {
	// Writer patches CRDs and gets back their metadata only, not a megabyte of schemas.
	Writer metadata.Interface
	// Reader reads CRDs from a watch, which may leave out their schemas.
	Reader client.Reader
}

// RefusedError says that the API server did not take a CRD.
type RefusedError struct {
	// Name of the CRD.
	Name string
	Err  error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s was refused: %s", e.Name, reason(e.Err))
}

func (e *RefusedError) Unwrap() error { return e.Err }

// definition is one CRD file, ready to be applied.
type definition struct {
	name   string
	digest string
	file   chart.File
}

// Apply brings the cluster's CRDs to what the chart's files say, with conversion webhooks in the given namespace. It sends
// only those whose digest differs from the one in the cluster, and reports the names of those it sent. All are read and
// checked before the first is sent. A refusal is a *RefusedError.
func (a *Applier) Apply(ctx context.Context, files []chart.File, namespace string) (sent []string, err error) {
	var changed []definition
	for _, f := range files {
		d := newDefinition(f, namespace)
		if live, err := a.live(ctx, d.name); err != nil {
			return nil, err
		} else if live == nil || live.Annotations[digestAnnotation] != d.digest {
			changed = append(changed, d)
		}
	}
	bodies := make([][]byte, len(changed))
	if err := each(changed, func(i int) (err error) {
		bodies[i], err = changed[i].prepare(namespace)
		return err
	}); err != nil {
		return nil, err
	}
	for _, d := range changed {
		sent = append(sent, d.name)
	}
	return sent, each(changed, func(i int) error { return a.send(ctx, changed[i].name, bodies[i]) })
}

// Pending lists those of the chart's CRDs that the API server does not serve yet. A CRD whose names are taken by another
// is a *RefusedError.
func (a *Applier) Pending(ctx context.Context, files []chart.File) ([]string, error) {
	var pending []string
	for _, f := range files {
		name := crdName(f)
		live, err := a.live(ctx, name)
		if err != nil {
			return nil, err
		}
		if live == nil {
			pending = append(pending, name)
			continue
		}
		if reason := refusal(live); reason != "" {
			return nil, &RefusedError{Name: name, Err: errors.New(reason)}
		}
		if !Served(live) {
			pending = append(pending, name)
		}
	}
	return pending, nil
}

// live reads a CRD from the watch; nil when it is not there.
func (a *Applier) live(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	err := a.Reader.Get(ctx, client.ObjectKey{Name: name}, d)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}
	return d, nil
}

// send applies one CRD. Force takes over fields that kubectl or clusterctl applied before; fields that are not in the
// body, cert-manager's caBundle and foreign labels among them, stay as they are.
func (a *Applier) send(ctx context.Context, name string, body []byte) error {
	force := true
	options := metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner, Force: &force}
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	_, err := a.Writer.Resource(resource).Patch(ctx, name, types.ApplyPatchType, body, options)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return &RefusedError{Name: name, Err: err}
	}
	if err != nil {
		return fmt.Errorf("apply CustomResourceDefinition %s: %w", name, err)
	}
	return nil
}

func newDefinition(f chart.File, namespace string) definition {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", digestVersion, namespace, f.Data))
	return definition{name: crdName(f), digest: hex.EncodeToString(sum[:]), file: f}
}

// crdName is the CRD's name: chartgen names the files after them.
func crdName(f chart.File) string {
	return strings.TrimSuffix(strings.TrimPrefix(f.Name, "crds/"), ".yaml")
}

// prepare makes the body of the request: the CRD with its references to the provider's namespace, and our digest.
func (d definition) prepare(namespace string) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(d.file.Data, &object.Object); err != nil {
		return nil, &RefusedError{Name: d.name, Err: err}
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if _, certificate, found := strings.Cut(annotations[annotationInjectCA], "/"); found {
		annotations[annotationInjectCA] = namespace + "/" + certificate
	}
	annotations[digestAnnotation] = d.digest
	object.SetAnnotations(annotations)
	service := []string{"spec", "conversion", "webhook", "clientConfig", "service"}
	if _, found, _ := unstructured.NestedMap(object.Object, service...); found {
		if err := unstructured.SetNestedField(object.Object, namespace, append(service, "namespace")...); err != nil {
			return nil, &RefusedError{Name: d.name, Err: err}
		}
	}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return json.Marshal(object.Object)
}

// each runs f for each definition, some at a time, and gives the first error.
func each(definitions []definition, f func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i := range definitions {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}

// reason is the API server's reason without the object's name, which the message has already.
func reason(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return err.Error()
	}
	causes := status.Status().Details.Causes
	text := fmt.Sprintf("%s: %s", causes[0].Field, causes[0].Message)
	if len(causes) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(causes)-1)
	}
	return text
}
