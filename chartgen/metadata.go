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
	// AnnotationNamespace holds the provider's Namespace as published, in YAML with variables. A chart
	// contains no Namespace. Set these labels and annotations when you create the namespace of a release:
	// some of them allow privileged pods. Charts of a provider without a Namespace do not have it.
	AnnotationNamespace = v1alpha2.Prefix + "/namespace"
	// AnnotationRequiredKinds lists the kinds of the chart's objects that neither Kubernetes nor
	// the chart's own CRDs define, as Kind.version.group, separated by commas. Usually these are
	// kinds of cert-manager.
	AnnotationRequiredKinds = v1alpha2.Prefix + "/required-kinds"
	// AnnotationConversionWebhooks is the number of the chart's CRDs that call a conversion webhook
	// in the default namespace.
	AnnotationConversionWebhooks = v1alpha2.Prefix + "/conversion-webhooks"
)

// chartMetadata returns the content of Chart.yaml.
func chartMetadata(b *bundle.Bundle, s *summary) chart.Metadata {
	description := fmt.Sprintf(
		"Cluster API %s %s, generated from the provider's published components", b.Provider.Type, b.Provider.Name)

	metadata := chart.Metadata{
		APIVersion:  "v2",
		Name:        b.Provider.Label,
		Version:     strings.TrimPrefix(b.Version, "v"),
		AppVersion:  s.Version,
		Description: description,
		Type:        "application",
		Keywords:    []string{"cluster-api", b.Provider.Name},
		Annotations: map[string]string{
			AnnotationProviderName:       b.Provider.Name,
			AnnotationProviderType:       b.Provider.Type,
			AnnotationContract:           s.Contract,
			AnnotationSource:             b.Source,
			AnnotationContentID:          ContentID(b),
			AnnotationChartgenVersion:    Version,
			AnnotationDefaultNamespace:   s.Namespace,
			AnnotationRequiredKinds:      strings.Join(s.RequiredKinds, ","),
			AnnotationConversionWebhooks: strconv.Itoa(s.ConversionWebhooks),
		},
	}

	if s.namespace != "" {
		metadata.Annotations[AnnotationNamespace] = s.namespace
	}

	return metadata
}

// IsProvider reports whether a chart was built from a provider's components.
func IsProvider(metadata chart.Metadata) bool {
	return metadata.Annotations[AnnotationContentID] != "" && metadata.Annotations[AnnotationContract] != ""
}
