package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/harness"
)

const (
	synced    = "Synced"
	outOfSync = "OutOfSync"

	healthy     = "Healthy"
	progressing = "Progressing"
	degraded    = "Degraded"
	suspended   = "Suspended"

	// refreshAnnotation makes Argo CD compare an Application now. Argo CD removes it.
	refreshAnnotation = "argocd.argoproj.io/refresh"
	// trackingAnnotation is on each object that Argo CD has applied.
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
)

// health is the health of an Application or one of its objects.
type health struct{ Status, Message string }

// status is the part of the status of an Application that scenarios look at.
type status struct {
	Sync       struct{ Status, Revision string }
	Health     health
	Conditions []struct{ Type, Message string }
	Resources  []struct {
		Group, Kind, Namespace, Name, Status string
		Health                               health
	}
	OperationState struct {
		Phase, Message, StartedAt string
		SyncResult                struct{ Revision string }
	}
}

// newApplication returns an Application of a name.
func newApplication(name string) *unstructured.Unstructured {
	app := &unstructured.Unstructured{}
	app.SetGroupVersionKind(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"})
	app.SetNamespace(namespace)
	app.SetName(name)

	return app
}

// read returns a function that reads the status of an Application.
func read(ctx context.Context, name string) func(Gomega) status {
	return func(g Gomega) status {
		app := newApplication(name)
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(app), app)).To(Succeed())

		text, err := json.Marshal(app)
		g.Expect(err).NotTo(HaveOccurred())

		var content struct{ Status status }
		g.Expect(json.Unmarshal(text, &content)).To(Succeed())

		return content.Status
	}
}

// is matches the status of an Application that is not changing.
func is(sync, health string) OmegaMatcher {
	return And(
		HaveField("Sync.Status", sync),
		HaveField("Health.Status", health),
		HaveField("OperationState.Phase", "Succeeded"),
		HaveField("Conditions", BeEmpty()),
	)
}

// healthOf returns the health of a provider resource.
func (s status) healthOf(m member) health {
	for _, r := range s.Resources {
		if r.Kind == m.providerType.GroupVersionKind().Kind && r.Name == m.name {
			return r.Health
		}
	}

	return health{}
}

// refresh makes Argo CD compare an Application with the cluster, and read its source again if hard, and waits until
// it has.
func refresh(ctx context.Context, name string, hard bool) {
	GinkgoHelper()

	value := map[bool]string{false: "normal", true: "hard"}[hard]
	app := newApplication(name)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, refreshAnnotation, value)
	Expect(admin.Patch(ctx, app, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(app), app)).To(Succeed())
		g.Expect(app.GetAnnotations()).NotTo(HaveKey(refreshAnnotation))
	}).Should(Succeed())
}

// expectNoWrites makes Argo CD compare an Application again and again, and expects that it remains as it is, and that
// neither Argo CD nor the operator changes anything else.
func expectNoWrites(ctx context.Context, name string) {
	GinkgoHelper()

	before, written := read(ctx, name)(Default), writes()

	for i := range 6 {
		refresh(ctx, name, i%2 == 1)

		now := read(ctx, name)(Default)
		Expect(now).To(is(synced, before.Health.Status))
		Expect(now.OperationState).To(Equal(before.OperationState), "Argo CD has synced again")
	}

	Expect(writes()).To(Equal(written))
}

// writes returns what Argo CD and the operator have changed, except for Applications.
func writes() []string {
	GinkgoHelper()

	all, err := cluster.Requests(func(r bed.Request) bool {
		return slices.Contains([]string{argoUser, harness.OperatorUser}, r.User) &&
			r.Write() && !r.Lease() && r.Resource != "events" && r.Group != "argoproj.io"
	})
	Expect(err).NotTo(HaveOccurred())

	lines := make([]string, len(all))
	for i, r := range all {
		lines[i] = r.User + " " + r.Verb + " " + r.URI
	}

	return lines
}

// remove deletes an Application with all its objects, as `argocd app delete` does, and waits until it is gone.
func remove(ctx context.Context, name string) {
	GinkgoHelper()

	app := newApplication(name)
	Expect(admin.Patch(ctx, app, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io"]}}`)))).To(Succeed())
	Expect(admin.Delete(ctx, app)).To(Succeed())
	Eventually(func() bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(app), app))
	}).Should(BeTrue())
}

// claimed returns all objects that Argo CD has marked as parts of an Application, as Kind namespace/name.
func claimed(ctx context.Context, application string) []string {
	GinkgoHelper()

	kinds, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	objects, err := metadata.NewForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	groups, err := kinds.ServerPreferredResources()
	Expect(err).NotTo(HaveOccurred())

	var claimed []string

	for _, group := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "patch"}}, groups) {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		Expect(err).NotTo(HaveOccurred())

		for _, kind := range group.APIResources {
			list, err := objects.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())

			for _, o := range list.Items {
				if strings.HasPrefix(o.Annotations[trackingAnnotation], application+":") {
					claimed = append(claimed, kind.Kind+" "+client.ObjectKeyFromObject(&o).String())
				}
			}
		}
	}

	return claimed
}
