// Package audit checks what runs in a management cluster against the contracts of Cluster API: the CRDs
// of providers and their objects, with the Secrets of workload clusters.
//
// Read reads a Snapshot from a cluster, and Check checks it without any request.
package audit

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/contract"
)

// Snapshot is the content of a management cluster.
type Snapshot struct {
	// Time is when the snapshot was taken.
	Time time.Time
	// CRDs are those for which relevant returns true, and those of Managed. Their schemas are not needed.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Objects are the objects of the CRDs, in the versions that ReadVersion returns. Only the fields
	// that Trim keeps are needed.
	Objects []*unstructured.Unstructured
	// Secrets are those of workload clusters.
	Secrets []Secret
	// Webhooks are the webhook configurations of providers.
	Webhooks []*unstructured.Unstructured
	// Managed are the labels of providers, by the names of CRDs that are not part of them and whose objects they
	// manage anyway. These CRDs are among CRDs.
	Managed map[string]string
	// Unread is what could not be read, or not completely.
	Unread []Unread
}

// Unread is a part of the cluster that is missing in a snapshot.
type Unread struct {
	// Name is the name of a CRD, SecretsName, WebhooksName or ProvidersName.
	Name string
	// Reason is why it is missing, for example "secrets is forbidden".
	Reason string
}

const (
	// SecretsName is the name of Secrets in Unread.
	SecretsName = "secrets"
	// WebhooksName is the name of webhook configurations in Unread.
	WebhooksName = "webhookconfigurations"
	// ProvidersName is the name of the resources of providers in Unread.
	ProvidersName = "providers"
)

// Options select the checks.
type Options struct {
	// Providers are the labels of the providers to check, such as "infrastructure-aws". Nil means all.
	Providers []string
	// DeletionTimeout is how long the deletion of an object may take.
	DeletionTimeout time.Duration
}

// DefaultDeletionTimeout is longer than clouds need to delete what belongs to a cluster.
const DefaultDeletionTimeout = time.Hour

// maxFindings is how many findings of a rule are returned. What is wrong with one object is often wrong
// with all objects of its kind.
const maxFindings = 100

type (
	rule     = contract.Rule[*graph]
	place    = contract.Place
	reporter = contract.Reporter
)

// Rules returns all rules, grouped by area.
func Rules() []contract.Rule[*graph] {
	return slices.Concat(coverageRules, crdRules, webhookRules, referenceRules, ownerRules, moveRules, pausingRules,
		conditionRules, statusRules, kubeconfigRules, secretRules)
}

// Check checks a snapshot against all rules.
func Check(s *Snapshot, o Options) []contract.Finding {
	return limited(slices.DeleteFunc(contract.Check(Rules(), newGraph(s, o)), o.leavesOut))
}

// leavesOut reports whether none of the providers that are checked is responsible for a finding.
func (o Options) leavesOut(f contract.Finding) bool {
	if o.Providers == nil || f.Providers == nil {
		return false
	}

	return !slices.ContainsFunc(f.Providers, func(p string) bool { return slices.Contains(o.Providers, p) })
}

// limited returns the first findings of each rule. The last one gives the number of the others.
func limited(findings []contract.Finding) []contract.Finding {
	found, last := map[string]int{}, map[string]int{}

	var kept []contract.Finding

	for _, f := range findings {
		if found[f.Rule]++; found[f.Rule] > maxFindings {
			continue
		}

		last[f.Rule] = len(kept)
		kept = append(kept, f)
	}

	for rule, n := range found {
		if n > maxFindings {
			kept[last[rule]].Message += fmt.Sprintf("; there are %d more findings of this rule", n-maxFindings)
		}
	}

	return kept
}

// coverageRules are about what the other rules cannot see.
var coverageRules = []rule{{
	Name:        "coverage/complete",
	Level:       contract.Info,
	Contract:    "https://kubernetes.io/docs/reference/access-authn-authz/rbac/",
	Requirement: "The audit reads all objects and webhooks of providers, and Secrets of clusters.",
	Why:         "What is not read is not checked, and neither is what refers to it.",
	Remedy:      "Grant get and list to the user of the audit, or raise --limit or --timeout.",
	Check: func(g *graph, report reporter) {
		for _, u := range g.snapshot.Unread {
			kind := "CustomResourceDefinition"

			switch u.Name {
			case SecretsName:
				kind = "Secret"
			case WebhooksName:
				kind = "WebhookConfiguration"
			case ProvidersName:
				kind = "Provider"
			}

			report(place{Kind: kind, Object: u.Name}, "is not checked completely: %s", u.Reason)
		}
	},
}, {
	Name:        "coverage/managed-types",
	Level:       contract.Info,
	Contract:    contract.Clusterctl + "#components-yaml",
	Requirement: "CRDs of the types that a provider manages are part of it.",
	Why:         "Capstan does not check or upgrade other CRDs, but their objects block the provider's removal.",
	Remedy:      "None is necessary. To select other types, set spec.additionalManagedTypes of the provider.",
	Check: func(g *graph, report reporter) {
		for _, k := range g.kinds {
			if k.additional {
				report(k.place(), "is not part of %s, which manages its objects; there are %s", k.provider, g.count(k))
			}
		}
	},
}}

// count describes how many objects of a kind there are.
func (g *graph) count(k *kind) string {
	found := 0

	for _, o := range g.objects {
		if o.kind == k {
			found++
		}
	}

	if !g.isRead(k.GroupKind) {
		return fmt.Sprintf("at least %d", found)
	}

	return strconv.Itoa(found)
}
