package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

// floorUser is the user name of measureFloor in the audit log.
const floorUser = "floor"

// measureFloor measures the time until the API server serves the CRDs of the installation on a new control plane, if
// all are created at the same time and nothing else is done: no program can install them faster.
func (s *setting) measureFloor(ctx context.Context) (measured stageFigures, err error) {
	b, err := bed.Start(ctx, bed.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()

	config, err := b.ConfigFor(floorUser)
	if err != nil {
		return nil, err
	}

	config.ContentType = runtime.ContentTypeProtobuf // of what is read

	c, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}

	bodies, err := definitions(s.older)
	if err != nil {
		return nil, err
	}

	serverCPU, err := serverCPU(ctx, b)
	if err != nil {
		return nil, err
	}

	begin := time.Now()
	group, running := errgroup.WithContext(ctx)

	for name, body := range bodies {
		group.Go(func() error {
			if err := c.ApiextensionsV1().RESTClient().Post().Resource("customresourcedefinitions").
				SetHeader("Content-Type", "application/json").Body(body).Do(running).Error(); err != nil {
				return fmt.Errorf("create CRD %s: %w", name, err)
			}

			return nil
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	// Polling before would be work for the API server, which is what is measured.
	for name := range bodies {
		if err := poll(ctx, func(ctx context.Context) (string, error) { return unestablished(ctx, c, name) }); err != nil {
			return nil, err
		}
	}

	f := figures{took: time.Since(begin)}
	if f.serverCPU, err = serverCPU(); err != nil {
		return nil, err
	}

	requests, err := requestsOf(b, floorUser, begin)
	f.requests, f.writes = len(requests), writesOf(requests)

	return stageFigures{install: f}, err
}

// definitions returns the CRDs of releases as JSON, by name.
func definitions(releases []*harness.Release) (map[string][]byte, error) {
	bodies := map[string][]byte{}

	for _, r := range releases {
		text, err := expand(r)
		if err != nil {
			return nil, err
		}

		objects, err := utilyaml.ToUnstructured([]byte(text))
		if err != nil {
			return nil, err
		}

		for _, o := range objects {
			if o.GetKind() != "CustomResourceDefinition" {
				continue
			}

			if bodies[o.GetName()], err = json.Marshal(o.Object); err != nil {
				return nil, err
			}
		}
	}

	return bodies, nil
}

// unestablished returns a reason if a CRD is not established.
func unestablished(ctx context.Context, c clientset.Interface, name string) (string, error) {
	crd, err := c.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}

	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return "", nil
		}
	}

	return "CRD " + name + " is not established", nil
}
