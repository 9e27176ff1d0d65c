package lint

import (
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// referenceRules are about references between the objects of the components. A missing object is at
// most a warning if every cluster has it, or if users are likely to create it.
var referenceRules = []Rule{
	{
		Name:        "references/service-account",
		Level:       Error,
		Contract:    clusterctlContract + "#components-yaml",
		Requirement: "The components contain the ServiceAccounts of their Pods.",
		Why:         "Kubernetes creates no Pod without its ServiceAccount.",
		Remedy:      "Add the ServiceAccount, or correct serviceAccountName.",
		check:       checkServiceAccounts,
	},
	{
		Name:        "references/webhook-service",
		Level:       Error,
		Contract:    clusterctlContract + "#components-yaml",
		Requirement: "The components contain the Services of their webhooks and CRD conversions.",
		Why:         "The API server rejects every request for which it calls such a webhook.",
		Remedy:      "Add the Service, or correct its name in clientConfig.",
		check:       checkWebhookServices,
	},
	{
		Name:        "references/conversion-service",
		Level:       Warning,
		Contract:    clusterctlContract + "#components-yaml",
		Requirement: "The components contain the conversion Services even of CRDs with a single version.",
		Why:         "When the CRD gets a second version, all of its objects become unreadable.",
		Remedy:      "Remove the conversion, or correct the name of the Service.",
		check:       checkUnusedConversions,
	},
	{
		Name:        "references/certificate",
		Level:       Error,
		Contract:    clusterctlContract + "#components-yaml",
		Requirement: "The components contain the Certificates from which a CA is injected, and the Issuers of Certificates.",
		Why:         "No CA is injected or no certificate is issued, so webhooks are not trusted.",
		Remedy:      "Add the object, or correct its name.",
		check:       checkCertificates,
	},
	{
		Name:        "references/role",
		Level:       Warning,
		Contract:    clusterctlContract + "#links-to-external-objects",
		Requirement: "The components contain the roles that they bind.",
		Why:         "The binding grants no permissions unless the role is created in another way.",
		Remedy:      "Add the role, or document where it comes from.",
		check:       checkRoles,
	},
	{
		Name:        "references/subject",
		Level:       Warning,
		Contract:    clusterctlContract + "#links-to-external-objects",
		Requirement: "The components contain the ServiceAccounts to which they grant permissions.",
		Why:         "The binding has no effect, or grants the permissions to an unrelated ServiceAccount of that name.",
		Remedy:      "Add the ServiceAccount, or correct the subject.",
		check:       checkSubjects,
	},
	{
		Name:        "references/pod",
		Level:       Warning,
		Contract:    clusterctlContract + "#links-to-external-objects",
		Requirement: "The components contain the Secrets and ConfigMaps that their Pods need, or a Certificate for them.",
		Why:         "The Pods do not start until the object is created in another way.",
		Remedy:      "Add the object, mark the reference as optional, or document where the object comes from.",
		check:       checkPodReferences,
	},
	{
		Name:        "references/service-selector",
		Level:       Warning,
		Contract:    clusterctlContract + "#components-yaml",
		Requirement: "Services select Pods of the components.",
		Why:         "A Service without Pods answers no requests.",
		Remedy:      "Change the selector of the Service to match the labels of the Pods.",
		check:       checkSelectors,
	},
	aggregationRule,
}

// lacks reports whether the components lack an object that another one refers to.
func (p *parsedBundle) lacks(kind, name string) bool {
	return !isUnresolved(name) && !p.has(kind, name)
}

func checkServiceAccounts(p *parsedBundle, report reporter) {
	for _, w := range p.workloads {
		name := bundle.NestedString(w.podSpec, "serviceAccountName")
		if name != "" && name != "default" && p.lacks("ServiceAccount", name) {
			report(p.componentsFile.at(w.doc, "serviceAccountName: "+name),
				"runs as ServiceAccount %s, which is missing", name)
		}
	}
}

func checkWebhookServices(p *parsedBundle, report reporter) {
	for _, doc := range p.objects("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration") {
		var seen []string // report each missing Service once, even if many webhooks call it

		for _, webhook := range bundle.NestedMaps(doc.Object.Object, "webhooks") {
			name := bundle.NestedString(webhook, "clientConfig", "service", "name")
			if name == "" || slices.Contains(seen, name) || !p.lacks("Service", name) {
				continue
			}

			seen = append(seen, name)
			report(p.componentsFile.at(doc, "clientConfig", "name: "+name), "calls the Service %s, which is missing", name)
		}
	}

	for _, c := range p.crds {
		name := c.ConversionService()
		if c.Converts() && name != "" && p.lacks("Service", name) {
			report(p.componentsFile.at(c.doc, "conversion", "name: "+name),
				"calls the conversion Service %s, which is missing", name)
		}
	}
}

func checkUnusedConversions(p *parsedBundle, report reporter) {
	for _, c := range p.crds {
		name := c.ConversionService()
		if !c.Converts() && name != "" && p.lacks("Service", name) {
			report(p.componentsFile.at(c.doc, "conversion", "name: "+name),
				"has only one version, so its conversion Service %s, which is missing, is not called yet", name)
		}
	}
}

func checkCertificates(p *parsedBundle, report reporter) {
	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]

		from := doc.Object.GetAnnotations()[v1alpha2.InjectCAAnnotation]
		if from == "" || isUnresolved(from) {
			continue
		}

		_, name, _ := strings.Cut(from, "/")
		if !p.has("Certificate", name) {
			report(p.componentsFile.at(doc, v1alpha2.InjectCAAnnotation),
				"injects the CA of Certificate %s, which is missing", from)
		}
	}

	for _, doc := range p.objects("Certificate") {
		kind := bundle.NestedString(doc.Object.Object, "spec", "issuerRef", "kind")
		name := bundle.NestedString(doc.Object.Object, "spec", "issuerRef", "name")

		if (kind == "" || kind == "Issuer") && p.lacks("Issuer", name) {
			report(p.componentsFile.at(doc, "issuerRef"), "is issued by Issuer %s, which is missing", name)
		}
	}
}

// clusterRoles exist in every cluster, in addition to those that begin with "system:".
var clusterRoles = []string{"cluster-admin", "admin", "edit", "view"}

func checkRoles(p *parsedBundle, report reporter) {
	for _, doc := range p.objects("RoleBinding", "ClusterRoleBinding") {
		kind := bundle.NestedString(doc.Object.Object, "roleRef", "kind")
		name := bundle.NestedString(doc.Object.Object, "roleRef", "name")

		builtIn := kind == "ClusterRole" && (strings.HasPrefix(name, "system:") || slices.Contains(clusterRoles, name))
		if !builtIn && p.lacks(kind, name) {
			report(p.componentsFile.at(doc, "roleRef", "name: "+name), "binds %s %s, which is missing", kind, name)
		}
	}
}

func checkSubjects(p *parsedBundle, report reporter) {
	for _, doc := range p.objects("RoleBinding", "ClusterRoleBinding") {
		for _, subject := range bundle.NestedMaps(doc.Object.Object, "subjects") {
			kind := bundle.NestedString(subject, "kind")
			name := bundle.NestedString(subject, "name")

			if kind == "ServiceAccount" && name != "default" && p.lacks(kind, name) {
				report(p.componentsFile.at(doc, "subjects", "name: "+name),
					"grants permissions to ServiceAccount %s, which is missing", name)
			}
		}
	}
}

// podReference is a reference of a Pod to a Secret or a ConfigMap.
type podReference struct{ kind, name string }

// references returns the Secrets and ConfigMaps without which the workload's Pods cannot start.
func (w workload) references() []podReference {
	var found []podReference

	add := func(kind string, source map[string]any, nameKey string) {
		if optional, _ := source["optional"].(bool); source != nil && !optional {
			found = append(found, podReference{kind, bundle.NestedString(source, nameKey)})
		}
	}
	addBoth := func(source map[string]any, secret, configMap string) {
		add("Secret", bundle.NestedMap(source, secret), "name")
		add("ConfigMap", bundle.NestedMap(source, configMap), "name")
	}

	for _, volume := range bundle.NestedMaps(w.podSpec, "volumes") {
		add("Secret", bundle.NestedMap(volume, "secret"), "secretName")
		add("ConfigMap", bundle.NestedMap(volume, "configMap"), "name")

		for _, source := range bundle.NestedMaps(volume, "projected", "sources") {
			addBoth(source, "secret", "configMap")
		}
	}

	for _, container := range w.containers {
		for _, source := range bundle.NestedMaps(container, "envFrom") {
			addBoth(source, "secretRef", "configMapRef")
		}

		for _, variable := range bundle.NestedMaps(container, "env") {
			addBoth(bundle.NestedMap(variable, "valueFrom"), "secretKeyRef", "configMapKeyRef")
		}
	}

	return found
}

func checkPodReferences(p *parsedBundle, report reporter) {
	created := map[podReference]bool{} // by cert-manager

	for _, doc := range p.objects("Certificate") {
		created[podReference{"Secret", bundle.NestedString(doc.Object.Object, "spec", "secretName")}] = true
	}

	for _, w := range p.workloads {
		seen := map[podReference]bool{}

		for _, ref := range w.references() {
			if seen[ref] || created[ref] || ref.name == "" || !p.lacks(ref.kind, ref.name) {
				continue
			}

			seen[ref] = true
			// The needle matches both "name: " and "secretName: ".
			report(p.componentsFile.at(w.doc, "ame: "+ref.name), "needs %s %s, which is missing", ref.kind, ref.name)
		}
	}
}

func checkSelectors(p *parsedBundle, report reporter) {
	for _, doc := range p.objects("Service") {
		selector := bundle.NestedMap(doc.Object.Object, "spec", "selector")
		selected := func(w workload) bool { return selects(selector, w.podLabels) }

		if len(selector) > 0 && !slices.ContainsFunc(p.workloads, selected) {
			report(p.componentsFile.at(doc, "selector:"), "selects none of the components' Pods")
		}
	}
}

// selects reports whether a selector matches labels.
func selects(selector, labels map[string]any) bool {
	for key, want := range selector {
		if labels[key] != want {
			return false
		}
	}

	return true
}
