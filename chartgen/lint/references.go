package lint

import (
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

const annotationInjectCA = "cert-manager.io/inject-ca-from"

// referenceRules are about references between the components' objects. What a cluster has anyway,
// or its user may well bring, is a warning at most.
var referenceRules = []Rule{
	{
		Name:        "references/service-account",
		Level:       Error,
		Requirement: "001-15",
		Contract:    clusterctlContract + "#components-yaml",
		Demand:      "The components bring the ServiceAccounts under which their Pods run.",
		Why:         "Kubernetes creates no Pod without its ServiceAccount.",
		Remedy:      "Add the ServiceAccount, or correct serviceAccountName.",
		check:       checkServiceAccounts,
	},
	{
		Name:        "references/webhook-service",
		Level:       Error,
		Requirement: "001-15",
		Contract:    clusterctlContract + "#components-yaml",
		Demand:      "The components bring the Services of their webhooks and CRD conversions.",
		Why:         "The API server fails every request that such a webhook sees.",
		Remedy:      "Add the Service, or correct its name in clientConfig.",
		check:       checkWebhookServices,
	},
	{
		Name:        "references/conversion-service",
		Level:       Warning,
		Requirement: "001-15",
		Contract:    clusterctlContract + "#components-yaml",
		Demand:      "A CRD of one version names no conversion Service that the components do not bring.",
		Why:         "The day the CRD gets a second version, all its objects become unreadable.",
		Remedy:      "Take the conversion out, or correct the Service's name.",
		check:       checkUnusedConversions,
	},
	{
		Name:        "references/certificate",
		Level:       Error,
		Requirement: "001-15",
		Contract:    clusterctlContract + "#components-yaml",
		Demand:      "The components bring the Certificates whose CA is injected and the Issuers of their Certificates.",
		Why:         "No CA is injected or no certificate issued, so webhooks are not trusted.",
		Remedy:      "Add the object, or correct its name.",
		check:       checkCertificates,
	},
	{
		Name:        "references/role",
		Level:       Warning,
		Requirement: "001-16",
		Contract:    clusterctlContract + "#links-to-external-objects",
		Demand:      "The components bring the roles that they bind.",
		Why:         "The binding grants nothing unless somebody else brings the role.",
		Remedy:      "Add the role, or say in the documentation who brings it.",
		check:       checkRoles,
	},
	{
		Name:        "references/subject",
		Level:       Warning,
		Requirement: "001-16",
		Contract:    clusterctlContract + "#links-to-external-objects",
		Demand:      "The components bring the ServiceAccounts that they grant something.",
		Why:         "The grant is for nobody, or for whoever creates a ServiceAccount of that name.",
		Remedy:      "Add the ServiceAccount, or correct the subject.",
		check:       checkSubjects,
	},
	{
		Name:        "references/pod",
		Level:       Warning,
		Requirement: "001-16",
		Contract:    clusterctlContract + "#links-to-external-objects",
		Demand:      "The components bring the Secrets and ConfigMaps that their Pods need, themselves or by a Certificate.",
		Why:         "The Pods do not start until somebody else creates them.",
		Remedy:      "Add the object, mark the reference optional, or say in the documentation who brings it.",
		check:       checkPodReferences,
	},
	{
		Name:        "references/service-selector",
		Level:       Warning,
		Requirement: "001-15",
		Contract:    clusterctlContract + "#components-yaml",
		Demand:      "Services select Pods of the components.",
		Why:         "A Service without Pods answers no request.",
		Remedy:      "Make the Service's selector match the labels of the Pods.",
		check:       checkSelectors,
	},
}

func checkServiceAccounts(r *release, report reporter) {
	for _, w := range r.workloads() {
		name := text(w.pod, "serviceAccountName")
		if name != "" && name != "default" && !open(name) && !r.has("ServiceAccount", name) {
			report(r.components.at(w.doc, "serviceAccountName: "+name), "runs as ServiceAccount %s, which is not there", name)
		}
	}
}

func checkWebhookServices(r *release, report reporter) {
	missing := func(doc *bundle.Document, clientConfig map[string]any, what string) {
		name := text(clientConfig, "service", "name")
		if name != "" && !open(name) && !r.has("Service", name) {
			report(r.components.at(doc, what, "name: "+name), "%s calls the Service %s, which is not there", what, name)
		}
	}
	for _, doc := range r.objects("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration") {
		var seen []string // one missing Service is one finding, however many webhooks call it

		for _, webhook := range mappings(doc.Object.Object, "webhooks") {
			config := mapping(webhook, "clientConfig")
			if name := text(config, "service", "name"); !slices.Contains(seen, name) {
				seen = append(seen, name)

				missing(doc, config, "clientConfig")
			}
		}
	}

	for _, c := range r.crds {
		if c.converts() {
			missing(c.doc, mapping(c.spec, "conversion", "webhook", "clientConfig"), "conversion")
		}
	}
}

func checkUnusedConversions(r *release, report reporter) {
	for _, c := range r.crds {
		name := text(c.spec, "conversion", "webhook", "clientConfig", "service", "name")
		if !c.converts() && name != "" && !open(name) && !r.has("Service", name) {
			report(
				r.components.at(c.doc, "conversion", "name: "+name),
				"has one version, so nothing calls its conversion's Service %s, which is not there",
				name,
			)
		}
	}
}

func checkCertificates(r *release, report reporter) {
	for i := range r.components.documents {
		doc := &r.components.documents[i]

		from := doc.Object.GetAnnotations()[annotationInjectCA]
		if _, name, _ := strings.Cut(from, "/"); from != "" && !open(from) && !r.has("Certificate", name) {
			report(r.components.at(doc, annotationInjectCA), "takes its CA from Certificate %s, which is not there", from)
		}
	}

	for _, doc := range r.objects("Certificate") {
		kind, name := text(
			doc.Object.Object,
			"spec",
			"issuerRef",
			"kind",
		), text(
			doc.Object.Object,
			"spec",
			"issuerRef",
			"name",
		)
		if (kind == "" || kind == "Issuer") && !open(name) && !r.has("Issuer", name) {
			report(r.components.at(doc, "issuerRef"), "is issued by Issuer %s, which is not there", name)
		}
	}
}

// clusterRoles are those that every cluster has, beside all that begin with "system:".
var clusterRoles = []string{"cluster-admin", "admin", "edit", "view"}

func checkRoles(r *release, report reporter) {
	for _, doc := range r.objects("RoleBinding", "ClusterRoleBinding") {
		kind, name := text(doc.Object.Object, "roleRef", "kind"), text(doc.Object.Object, "roleRef", "name")

		builtIn := kind == "ClusterRole" && (strings.HasPrefix(name, "system:") || slices.Contains(clusterRoles, name))
		if !builtIn && !open(name) && !r.has(kind, name) {
			report(r.components.at(doc, "roleRef", "name: "+name), "binds %s %s, which is not there", kind, name)
		}
	}
}

func checkSubjects(r *release, report reporter) {
	for _, doc := range r.objects("RoleBinding", "ClusterRoleBinding") {
		for _, subject := range mappings(doc.Object.Object, "subjects") {
			name := text(subject, "name")
			if text(subject, "kind") == "ServiceAccount" && name != "default" && !open(name) && !r.has("ServiceAccount", name) {
				report(r.components.at(doc, "subjects", "name: "+name), "grants to ServiceAccount %s, which is not there", name)
			}
		}
	}
}

// podReference is a Secret or ConfigMap that Pods need.
type podReference struct{ kind, name string }

// references lists what the workload's Pods cannot start without.
func (w workload) references() []podReference {
	var found []podReference

	add := func(kind string, source map[string]any, nameKey string) {
		if optional, _ := source["optional"].(bool); source != nil && !optional {
			found = append(found, podReference{kind, text(source, nameKey)})
		}
	}
	addBoth := func(source map[string]any, secret, configMap string) {
		add("Secret", mapping(source, secret), "name")
		add("ConfigMap", mapping(source, configMap), "name")
	}

	for _, volume := range mappings(w.pod, "volumes") {
		add("Secret", mapping(volume, "secret"), "secretName")
		add("ConfigMap", mapping(volume, "configMap"), "name")

		for _, source := range mappings(volume, "projected", "sources") {
			addBoth(source, "secret", "configMap")
		}
	}

	for _, container := range w.containers() {
		for _, source := range mappings(container, "envFrom") {
			addBoth(source, "secretRef", "configMapRef")
		}

		for _, variable := range mappings(container, "env") {
			addBoth(mapping(variable, "valueFrom"), "secretKeyRef", "configMapKeyRef")
		}
	}

	return found
}

func checkPodReferences(r *release, report reporter) {
	brought := map[podReference]bool{}
	for _, doc := range r.objects("Certificate") {
		brought[podReference{"Secret", text(doc.Object.Object, "spec", "secretName")}] = true
	}

	for _, w := range r.workloads() {
		seen := map[podReference]bool{}
		for _, ref := range w.references() {
			// "ame: " is the end of both name and secretName.
			if !seen[ref] && !brought[ref] && !open(ref.name) && ref.name != "" && !r.has(ref.kind, ref.name) {
				report(r.components.at(w.doc, "ame: "+ref.name), "needs %s %s, which is not there", ref.kind, ref.name)
			}

			seen[ref] = true
		}
	}
}

func checkSelectors(r *release, report reporter) {
	workloads := r.workloads()
	for _, doc := range r.objects("Service") {
		selector := mapping(doc.Object.Object, "spec", "selector")
		if len(selector) > 0 &&
			!slices.ContainsFunc(workloads, func(w workload) bool { return selects(selector, w.labels) }) {
			report(r.components.at(doc, "selector:"), "selects none of the components' Pods")
		}
	}
}

// selects reports whether labels have all that a selector asks for.
func selects(selector, labels map[string]any) bool {
	for key, want := range selector {
		if labels[key] != want {
			return false
		}
	}

	return true
}
