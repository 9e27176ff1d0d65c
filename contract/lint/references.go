package lint

import (
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// referenceRules are about references between the objects of the components. A missing object is at
// most a warning if every cluster has it, or if users are likely to create it.
var referenceRules = []rule{
	{
		Name:        "references/service-account",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "The components contain the ServiceAccounts of their Pods.",
		Why:         "Kubernetes creates no Pod without its ServiceAccount.",
		Remedy:      "Add the ServiceAccount, or correct serviceAccountName.",
		Check:       checkServiceAccounts,
	},
	{
		Name:        "references/webhook-service",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "The components contain the Services of their webhooks.",
		Why:         "The API server refuses each request for which it calls such a webhook.",
		Remedy:      "Add the Service, or correct its name in clientConfig.",
		Check:       checkWebhookServices,
	},
	{
		Name:        "references/unneeded-webhook",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "The components contain Services and Certificates also of webhooks without which no request fails.",
		Why: "When the CRD gets a second version, its objects become unreadable. What a webhook with the failurePolicy " +
			"Ignore does is left out.",
		Remedy: "Remove the webhook, or correct the name of the object.",
		Check:  checkUnneededWebhooks,
	},
	{
		Name:        "references/certificate",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "The components contain the Certificates of their webhooks, and the Issuers of Certificates.",
		Why: "No CA is injected, so the API server does not trust the webhook and refuses each request for which it calls " +
			"it; or no certificate is issued, so Pods that need it do not start.",
		Remedy: "Add the object, or correct its name.",
		Check:  checkCertificates,
	},
	{
		Name:        "references/role",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#links-to-external-objects",
		Requirement: "The components contain the roles that they bind.",
		Why:         "The binding grants no permissions unless the role is created in another way.",
		Remedy:      "Add the role, or document where it comes from.",
		Check:       checkRoles,
	},
	{
		Name:        "references/subject",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#links-to-external-objects",
		Requirement: "The components contain the ServiceAccounts that get permissions.",
		Why:         "The binding has no effect, or grants the permissions to an unrelated ServiceAccount of that name.",
		Remedy:      "Add the ServiceAccount, or correct the subject.",
		Check:       checkSubjects,
	},
	{
		Name:        "references/pod",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#links-to-external-objects",
		Requirement: "The components contain the Secrets and ConfigMaps of their Pods, or a Certificate.",
		Why:         "The Pods do not start until the object is created in another way.",
		Remedy:      "Add the object, mark the reference as optional, or document where the object comes from.",
		Check:       checkPodReferences,
	},
	{
		Name:        "references/service-selector",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "Services select Pods of the components.",
		Why:         "A Service without Pods answers no requests.",
		Remedy:      "Change the selector of the Service to match the labels of the Pods.",
		Check:       checkSelectors,
	},
	aggregationRule,
	ownerRule,
}

// lacks reports whether the components lack an object that another one refers to.
func (p *parsedBundle) lacks(kind, name string) bool {
	return !isUnresolved(name) && !p.has(kind, name)
}

func checkServiceAccounts(p *parsedBundle, report reporter) {
	for _, w := range p.workloads {
		name := bundle.NestedString(w.podSpec, "serviceAccountName")
		if name != "" && name != "default" && p.lacks("ServiceAccount", name) {
			report(p.componentsFile.at(w.doc), "runs as ServiceAccount %s, which is missing", name)
		}
	}
}

// webhook is a webhook of an object of the components.
type webhook struct {
	doc *bundle.Document
	// service is the name of the Service that responds; empty if it is called by its address.
	service string
	// needed reports whether requests fail if the webhook does not respond.
	needed bool
}

// webhooks returns the webhooks of the components, also those that convert objects of CRDs.
func (p *parsedBundle) webhooks() []webhook {
	var found []webhook

	for _, doc := range p.objects("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration") {
		for _, w := range bundle.NestedMaps(doc.Object.Object, "webhooks") {
			service := bundle.NestedString(w, "clientConfig", "service", "name")
			found = append(found, webhook{doc, service, bundle.NestedString(w, "failurePolicy") != "Ignore"})
		}
	}

	for _, c := range p.crds {
		if bundle.NestedString(c.Spec, "conversion", "strategy") == "Webhook" {
			found = append(found, webhook{c.doc, c.ConversionService(), c.Converts()})
		}
	}

	return found
}

func checkWebhookServices(p *parsedBundle, report reporter) {
	p.reportMissingServices(report, true, "calls the Service %s, which is missing")
}

// reportMissingServices reports the missing Services of webhooks that are needed, or of those that are not, once for an
// object.
func (p *parsedBundle) reportMissingServices(report reporter, needed bool, format string) {
	type call struct {
		doc     *bundle.Document
		service string
	}

	seen := map[call]bool{}

	for _, w := range p.webhooks() {
		current := call{w.doc, w.service}
		if w.needed != needed || w.service == "" || seen[current] || !p.lacks("Service", w.service) {
			continue
		}

		seen[current] = true

		report(p.componentsFile.at(w.doc), format, w.service)
	}
}

func checkUnneededWebhooks(p *parsedBundle, report reporter) {
	p.reportMissingServices(report, false, "names the Service %s, which is missing, although no request fails without it")
	p.reportMissingCertificates(report, false,
		"injects the CA of Certificate %s, which is missing, although no request fails without it")
}

func checkCertificates(p *parsedBundle, report reporter) {
	p.reportMissingCertificates(report, true, "injects the CA of Certificate %s, which is missing")

	for _, doc := range p.objects("Certificate") {
		kind := bundle.NestedString(doc.Object.Object, "spec", "issuerRef", "kind")
		name := bundle.NestedString(doc.Object.Object, "spec", "issuerRef", "name")

		if (kind == "" || kind == "Issuer") && p.lacks("Issuer", name) {
			report(p.componentsFile.at(doc), "is issued by Issuer %s, which is missing", name)
		}
	}
}

// reportMissingCertificates reports the missing Certificates whose CA is injected into objects with webhooks that are
// needed, or into the others.
func (p *parsedBundle) reportMissingCertificates(report reporter, needed bool, format string) {
	inNeed := map[*bundle.Document]bool{}
	for _, w := range p.webhooks() {
		inNeed[w.doc] = inNeed[w.doc] || w.needed
	}

	for _, doc := range p.objects("APIService") {
		inNeed[doc] = true
	}

	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]

		from := doc.Object.GetAnnotations()[v1alpha2.InjectCAAnnotation]
		if from == "" || isUnresolved(from) || inNeed[doc] != needed {
			continue
		}

		if _, name, _ := strings.Cut(from, "/"); !p.has("Certificate", name) {
			report(p.componentsFile.at(doc), format, from)
		}
	}
}

// clusterRoles exist in every cluster, in addition to those that begin with "system:".
var clusterRoles = []string{"cluster-admin", "admin", "edit", "view"}

// isBuiltIn reports whether a role exists in every cluster.
func isBuiltIn(kind, name string) bool {
	return kind == "ClusterRole" && (strings.HasPrefix(name, "system:") || slices.Contains(clusterRoles, name))
}

func checkRoles(p *parsedBundle, report reporter) {
	for _, doc := range p.objects("RoleBinding", "ClusterRoleBinding") {
		kind := bundle.NestedString(doc.Object.Object, "roleRef", "kind")
		name := bundle.NestedString(doc.Object.Object, "roleRef", "name")

		if !isBuiltIn(kind, name) && p.lacks(kind, name) {
			report(p.componentsFile.at(doc), "binds %s %s, which is missing", kind, name)
		}
	}
}

func checkSubjects(p *parsedBundle, report reporter) {
	for _, doc := range p.objects("RoleBinding", "ClusterRoleBinding") {
		for _, subject := range bundle.NestedMaps(doc.Object.Object, "subjects") {
			kind := bundle.NestedString(subject, "kind")
			name := bundle.NestedString(subject, "name")

			if kind == "ServiceAccount" && name != "default" && p.lacks(kind, name) {
				report(p.componentsFile.at(doc), "grants permissions to ServiceAccount %s, which is missing", name)
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
			report(p.componentsFile.at(w.doc), "needs %s %s, which is missing", ref.kind, ref.name)
		}
	}
}

func checkSelectors(p *parsedBundle, report reporter) {
	for _, doc := range p.objects("Service") {
		selector := bundle.NestedMap(doc.Object.Object, "spec", "selector")
		selected := func(w workload) bool { return selects(selector, w.podLabels) }

		if len(selector) > 0 && !slices.ContainsFunc(p.workloads, selected) {
			report(p.componentsFile.at(doc), "selects none of the components' Pods")
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
