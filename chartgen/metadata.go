package chartgen

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// Annotations in Chart.yaml that describe where a chart comes from and what it needs.
const (
	AnnotationProviderName     = v1alpha2.Prefix + "/provider-name"
	AnnotationProviderType     = v1alpha2.Prefix + "/provider-type"
	AnnotationContract         = v1alpha2.Prefix + "/contract"
	AnnotationSource           = v1alpha2.Prefix + "/source"
	AnnotationContentID        = v1alpha2.Prefix + "/content-id"
	AnnotationChartgenVersion  = v1alpha2.Prefix + "/chartgen-version"
	AnnotationDefaultNamespace = v1alpha2.Prefix + "/default-namespace"
	// AnnotationRequiredKinds lists the kinds of the chart's objects that neither Kubernetes nor
	// the chart's own CRDs define, as Kind.version.group, separated by commas. Usually these are
	// kinds of cert-manager.
	AnnotationRequiredKinds = v1alpha2.Prefix + "/required-kinds"
	// AnnotationConversionWebhooks is the number of the chart's CRDs that call a conversion webhook
	// in the default namespace.
	AnnotationConversionWebhooks = v1alpha2.Prefix + "/conversion-webhooks"
)

// metadata returns the content of Chart.yaml.
func (c *content) metadata(contentID string) chart.Metadata {
	b, conversions := c.bundle, 0

	for _, crd := range c.crds {
		if bundle.HasConversionWebhook(crd.object) {
			conversions++
		}
	}

	return chart.Metadata{
		APIVersion: "v2",
		Name:       b.Provider.Label,
		Version:    strings.TrimPrefix(b.Version, "v"),
		AppVersion: version(b),
		Description: fmt.Sprintf(
			"Cluster API %s %s, generated from the provider's published components", b.Provider.Type, b.Provider.Name),
		Type:     "application",
		Keywords: []string{"cluster-api", b.Provider.Name},
		Annotations: map[string]string{
			AnnotationProviderName:     b.Provider.Name,
			AnnotationProviderType:     b.Provider.Type,
			AnnotationContract:         c.contract,
			AnnotationSource:           b.Source,
			AnnotationContentID:        contentID,
			AnnotationChartgenVersion:  Version,
			AnnotationDefaultNamespace: c.namespace,
			AnnotationRequiredKinds:    strings.Join(c.requiredKinds, ","),

			AnnotationConversionWebhooks: strconv.Itoa(conversions),
		},
	}
}
