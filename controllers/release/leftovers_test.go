package release_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
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
