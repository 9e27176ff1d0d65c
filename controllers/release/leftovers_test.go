package release_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var _ = Describe("The objects of a release without records", func() {
	var (
		namespace string
		engine    *release.Engine
		search    cluster.Search
	)

	configMapKind := schema.GroupKind{Kind: "ConfigMap"}
	clusterRoleKind := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		engine = newEngine("one")
		search = cluster.Search{
			Selector: labels.Everything(),
			Reader:   engine.Metadata(),
			Kinds:    []schema.GroupKind{configMapKind, clusterRoleKind},
		}

		kept := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  annotations: {helm.sh/resource-policy: keep}\n"
		mustApply(ctx, engine, specOf(namespace, "1.0.0", configMap("config", ""), configMap("moved", ""), kept, clusterRole))
		kubectlApply(ctx, namespace, configMap("other", ""))
		run(ctx, "kubectl", "annotate", "--overwrite", "configmap", "moved", "-n", namespace,
			"meta.helm.sh/release-name=another")
	})

	find := func(ctx context.Context) ([]string, error) {
		found, err := engine.FindLeftovers(ctx, releaseIn(namespace), search)

		var names []string
		for _, key := range release.KeysOf(found) {
			names = append(names, key.String())
		}

		return names, err
	}
	config := func() string { return fmt.Sprintf("ConfigMap %s/config", namespace) }
	role := func() string { return fmt.Sprintf("ClusterRole %s-role", namespace) }

	It("are those with its annotations, and are deleted", func(ctx SpecContext) {
		Expect(find(ctx)).To(HaveExactElements(role(), config()))

		search.Kinds = nil

		Expect(find(ctx)).To(HaveExactElements(role(), config()), "all kinds are searched if they are unknown")

		search.Except = namespace

		Expect(find(ctx)).To(HaveExactElements(role()))

		search.Except = ""

		found, err := engine.FindLeftovers(ctx, releaseIn(namespace), search)
		Expect(err).NotTo(HaveOccurred())
		Expect(engine.DeleteLeftovers(ctx, releaseIn(namespace), cluster.RemoveOptions{}, found)).To(Succeed())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "moved", "other"))
		Expect(find(ctx)).To(BeEmpty())
		Expect(engine.DeleteLeftovers(ctx, releaseIn(namespace), cluster.RemoveOptions{}, found)).To(
			Succeed(), "it can be repeated")
	})

	It("are found on all pages of a list", func(ctx SpecContext) {
		// Objects of a namespace that comes first fill the first page.
		for i := range 501 {
			filler := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("filler-%d", i)}}
			_, err := client.CoreV1().ConfigMaps("default").Create(ctx, filler, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}

		DeferCleanup(func(ctx SpecContext) {
			Expect(client.CoreV1().ConfigMaps("default").
				DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
		})

		Expect(find(ctx)).To(ContainElement(config()))
	})

	It("are found although another kind cannot be listed, which is reported only if the release may have it",
		func(ctx SpecContext) {
			establishCRD(ctx, namespace, "unreadables")
			DeferCleanup(func(ctx SpecContext) {
				run(ctx, "kubectl", "patch", "crd", "unreadables.release.test", "--type=merge", "-p",
					`{"spec": {"conversion": {"strategy": "None", "webhook": null}}}`)
				run(ctx, "kubectl", "delete", "crd", "unreadables.release.test")
			})
			kubectlApply(ctx, namespace, custom("unreadables", "old"))
			run(ctx, "kubectl", "patch", "crd", "unreadables.release.test", "--type=json", "-p", `[
{"op": "copy", "from": "/spec/versions/0", "path": "/spec/versions/1"},
{"op": "replace", "path": "/spec/versions/1/name", "value": "v2"},
{"op": "replace", "path": "/spec/versions/0/storage", "value": false},
{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "Webhook", "webhook": {
  "conversionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "default", "name": "missing"}}}}}]`)
			Eventually(func() error {
				return command(ctx, "kubectl", "get", "kindunreadables.v2.release.test", "-A").Run()
			}).ShouldNot(Succeed())

			Expect(find(ctx)).To(HaveExactElements(role(), config()))

			search.Kinds = append(search.Kinds, schema.GroupKind{Group: "release.test", Kind: "Kindunreadables"})
			found, err := find(ctx)
			Expect(found).To(HaveExactElements(role(), config()))

			problem := expectError[*cluster.SearchError](err)
			Expect(problem).To(MatchError(And(
				HavePrefix("it is unknown whether release "+namespace+"/"+name+" still has objects of the kind "+
					"Kindunreadables.release.test: conversion webhook for release.test/v1"),
				HaveSuffix("; repair the webhook's server, or set spec.conversion.strategy of the kind's "+
					"CustomResourceDefinition to None"))))
		})

	It("are found although an API does not respond, which is reported only if the release may have its kinds",
		func(ctx SpecContext) {
			kubectlApply(ctx, "default", `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.away.test}
spec:
  {group: away.test, version: v1, groupPriorityMinimum: 1, versionPriority: 1, insecureSkipTLSVerify: true,
   service: {namespace: default, name: missing}}
`)
			DeferCleanup(func(ctx SpecContext) { run(ctx, "kubectl", "delete", "apiservice", "v1.away.test") })

			Expect(find(ctx)).To(HaveExactElements(role(), config()))

			search.Kinds = append(search.Kinds, schema.GroupKind{Group: "away.test", Kind: "Thing"})

			Eventually(func() error { _, err := find(ctx); return err }).Should(MatchError(And(
				ContainSubstring("still has objects of the kind Thing.away.test"),
				HaveSuffix("; check the APIService of away.test and the server behind it"))))
		})

	It("are found by the reader, and deleted with the engine's own permissions", func(ctx SpecContext) {
		engine = newEngine("tenant", func(c *rest.Config) { c.Impersonate.UserName = "stranger" })

		found, err := engine.FindLeftovers(ctx, releaseIn(namespace), search)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(2))

		err = engine.DeleteLeftovers(ctx, releaseIn(namespace), cluster.RemoveOptions{}, found)
		Expect(expectError[*cluster.RemoveError](err).Objects).To(HaveLen(2))
		Expect(err).To(MatchError(ContainSubstring(`User "stranger" cannot delete resource "clusterroles"`)))
		Expect(configMaps(ctx, namespace)).To(ContainElement("config"))

		search.Reader = engine.Metadata()
		_, err = find(ctx)
		Expect(expectError[*cluster.SearchError](err).Kinds).To(HaveLen(2))
		Expect(err).To(MatchError(And(ContainSubstring("ClusterRole"), ContainSubstring("(and 1 more kinds)"))))
	})
})

// The record of a revision is not the only trace of its objects: they have the marks of the release.
var _ = Describe("The objects of a revision whose record was deleted", func() {
	var (
		namespace            string
		engine               *release.Engine
		first, second, third release.Spec
	)

	BeforeEach(func(ctx SpecContext) {
		namespace, engine = newNamespace(ctx), newEngine("one")
		first = specOf(namespace, "1.0.0", configMap("both", "1"), configMap("first", ""))
		second = specOf(namespace, "1.1.0", configMap("both", "2"), configMap("left", ""), deployment("manager", "1"))
		third = specOf(namespace, "1.2.0", configMap("both", "3"), configMap("third", ""))
		kubectlApply(ctx, namespace, configMap("other", ""))
	})

	forget := func(ctx context.Context, revision int) {
		GinkgoHelper()
		Expect(client.CoreV1().Secrets(namespace).Delete(ctx, secretOf(revision), metav1.DeleteOptions{})).To(Succeed())
	}

	// prune deletes what the newest revision has left, which it must know of.
	prune := func(ctx context.Context, kinds ...schema.GroupKind) {
		GinkgoHelper()

		options := pruning(ctx, engine, namespace)
		options.Search.Kinds = kinds

		revision := newest(ctx, engine, namespace)
		Expect(revision.Unpruned).To(BeTrue())
		Expect(engine.Prune(ctx, releaseIn(namespace), revision, options)).To(Succeed())
		Expect(newest(ctx, engine, namespace).Unpruned).To(BeFalse())
	}

	It("are deleted after the next revision", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		mustApply(ctx, engine, second)
		forget(ctx, 2)

		// The status knows that there was a later revision, so it does not confirm this one.
		history := accepted(ctx, engine, releaseIn(namespace))
		history.Revisions[0].Known = state.Evidence{}
		digest, err := first.Digest()
		Expect(err).NotTo(HaveOccurred())

		prepared, err := engine.Prepare(ctx, first, engine.Determine(history, digest),
			release.PrepareOptions{Known: history.Revisions})
		Expect(err).NotTo(HaveOccurred())
		Expect(prepared.Apply(nil)).To(HaveField("Revision", 2))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "first", "left", "other"))

		prune(ctx)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "first", "other"))
		Expect(run(ctx, "kubectl", "get", "deployments", "-n", namespace)).To(ContainSubstring("No resources found"))
	})

	It("are deleted after a rollback", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		mustApply(ctx, engine, second)
		_, err := apply(ctx, during(&outage{method: http.MethodPatch, path: "/configmaps/both"}, lasting), third)
		expectError[*cluster.UnavailableError](err)
		forget(ctx, 2)

		options := release.RollbackOptions{Target: confirmed(1), Known: accepted(ctx, engine, releaseIn(namespace)).Revisions}
		Expect(engine.Rollback(ctx, first.Release, options, observe(ctx, engine, first))).Error().NotTo(HaveOccurred())
		prune(ctx)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "first", "other"))
	})

	It("are deleted if all records are lost, but not what a controller has created", func(ctx SpecContext) {
		mustApply(ctx, engine, second)
		forget(ctx, 1)

		manager := getDeployment(ctx, namespace, "manager")
		owner := metav1.NewControllerRef(manager, appsv1.SchemeGroupVersion.WithKind("Deployment"))
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "created", Annotations: manager.Annotations, OwnerReferences: []metav1.OwnerReference{*owner},
		}}
		_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, created, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		spec := specOf(namespace, "1.2.0", configMap("both", "3"), deployment("manager", "1"))
		digest, err := spec.Digest()
		Expect(err).NotTo(HaveOccurred())

		observed := engine.Determine(state.History{Release: spec.Release, Lost: true}, digest)
		Expect(applyObserved(ctx, engine, spec, observed)).To(HaveField("Revision", 1))
		prune(ctx)
		Expect(configMaps(ctx, namespace)).To(ConsistOf("both", "created", "other"))
	})

	It("are reported by an uninstall that may have left some", func(ctx SpecContext) {
		mustApply(ctx, engine, first)
		_, err := apply(ctx, during(&outage{method: http.MethodPatch, path: "/configmaps/both"}, lasting), second)
		expectError[*cluster.UnavailableError](err)
		forget(ctx, 1)

		result, err := engine.Uninstall(ctx, first.Release, confirmed(2), cluster.RemoveOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.MissesRecords).To(BeTrue())
		Expect(configMaps(ctx, namespace)).To(ConsistOf("first", "other"))
	})
})
