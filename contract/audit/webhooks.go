package audit

import (
	"context"
	"encoding/base64"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
	apiobject "github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
)

// webhookRules are about webhook configurations as they are in the cluster.
var webhookRules = []rule{{
	Name:        "webhooks/ca",
	Level:       contract.Error,
	Contract:    contract.Clusterctl + "#components-yaml",
	Requirement: "A webhook that runs as a Service has its certificate authority.",
	Why:         "The API server cannot call the webhook, so it refuses the requests that the webhook is for.",
	Remedy:      "Read the status of the provider's Certificate, and the log of cert-manager's cainjector.",
	Check: func(g *graph, report reporter) {
		for _, configuration := range g.snapshot.Webhooks {
			checkCA(configuration, report)
		}
	},
}}

// maxNamed is how many webhooks of a configuration a finding names.
const maxNamed = 3

func checkCA(configuration *unstructured.Unstructured, report reporter) {
	p := place{Kind: configuration.GetKind(), Object: configuration.GetName()}
	if label := configuration.GetLabels()[v1alpha2.ClusterctlProviderLabel]; label != "" {
		p.Providers = []string{label}
	}

	var names []string

	for _, webhook := range bundle.NestedMaps(configuration.Object, "webhooks") {
		service := bundle.NestedMap(webhook, "clientConfig", "service")
		ca, _ := base64.StdEncoding.DecodeString(bundle.NestedString(webhook, "clientConfig", "caBundle"))

		if service != nil && !bundle.HasCertificate(ca) {
			names = append(names, quote(bundle.NestedString(webhook, "name")))
		}
	}

	if len(names) > 0 {
		report(p, "has no certificate authority for %s: %s", apiobject.Count(len(names), "webhook"),
			apiobject.List(names, maxNamed))
	}
}

// readWebhooks reads the webhook configurations of providers.
func (r *reader) readWebhooks(ctx context.Context) {
	options := metav1.ListOptions{Limit: pageSize, LabelSelector: v1alpha2.ClusterctlProviderLabel}

	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		list := r.objects.Resource(
			schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}).List

		for page, err := range paging.Pages(ctx, options, list) {
			if err == nil && len(r.snapshot.Webhooks)+len(page.Items) > r.limits.Objects {
				err = fmt.Errorf("there are more than %d webhook configurations", r.limits.Objects)
			}

			if err != nil {
				r.unread(ctx, WebhooksName, err)
				return
			}

			for i := range page.Items {
				r.snapshot.Webhooks = append(r.snapshot.Webhooks, &page.Items[i])
			}
		}
	}
}
