package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/harness"
)

const (
	// pollEvery is the shortest interval of polling. Later it is a part of the time so far, pollPart: polling is work
	// for the API server, which must not matter, and long times need not be that exact.
	pollEvery = 10 * time.Millisecond
	pollPart  = 50
	// stageTimeout is how long a stage may take.
	stageTimeout = 3 * time.Minute
)

func toDeployment(o *unstructured.Unstructured) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	return d, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d)
}

// imagesOf returns the images of the containers, sorted.
func imagesOf(d *appsv1.Deployment) []string {
	images := make([]string, 0, len(d.Spec.Template.Spec.Containers))
	for _, c := range d.Spec.Template.Spec.Containers {
		images = append(images, c.Image)
	}

	slices.Sort(images)

	return images
}

// unavailable returns why the Deployments of a release do not run its images, and "" if they do and all their replicas
// are available. With wanted replicas, one Deployment must have as many.
func unavailable(deployments []appsv1.Deployment, images map[string][]string, replicas int32) string {
	for name, wanted := range images {
		i := slices.IndexFunc(deployments, func(d appsv1.Deployment) bool { return d.Name == name })
		if i < 0 {
			return "there is no Deployment " + name
		}

		d := &deployments[i]

		switch s := d.Status; {
		case !slices.Equal(imagesOf(d), wanted):
			return fmt.Sprintf("Deployment %s has images %s", name, strings.Join(imagesOf(d), ", "))
		case d.Spec.Replicas == nil || *d.Spec.Replicas == 0 || replicas > 0 && *d.Spec.Replicas != replicas:
			return fmt.Sprintf("Deployment %s does not have the replicas wanted", name)
		case s.ObservedGeneration != d.Generation || s.Replicas != *d.Spec.Replicas ||
			s.UpdatedReplicas != s.Replicas || s.AvailableReplicas != s.Replicas:
			return fmt.Sprintf("Deployment %s has %d replicas, %d updated, %d available",
				name, s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
		}
	}

	return ""
}

// awaitManagers polls until the Deployments of releases run.
func awaitManagers(ctx context.Context, c client.Client, releases []*harness.Release, replicas int32) error {
	var all []map[string][]string

	for _, r := range releases {
		images, err := managers(r)
		if err != nil {
			return err
		}

		all = append(all, images)
	}

	return poll(ctx, func(ctx context.Context) (string, error) {
		list := &appsv1.DeploymentList{}
		if err := c.List(ctx, list); err != nil {
			return "", err
		}

		for _, images := range all {
			if reason := unavailable(list.Items, images, replicas); reason != "" {
				return reason, nil
			}
		}

		return "", nil
	})
}

// poll calls a function until it returns no reason to wait.
func poll(ctx context.Context, done func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, stageTimeout)
	defer cancel()

	reason, begin := "nothing was seen", time.Now()

	for {
		now, err := done(ctx)
		if err == nil && now == "" {
			return nil
		}

		if ctx.Err() != nil {
			return fmt.Errorf("%w; until then: %s", ctx.Err(), reason)
		}

		if err != nil {
			return err
		}

		reason = now

		pause(ctx, max(pollEvery, time.Since(begin)/pollPart))
	}
}
