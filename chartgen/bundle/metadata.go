package bundle

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// metadataVersion is the API version of metadata.yaml. clusterctl rejects all others.
var metadataVersion = clusterctlv1.GroupVersion.String()

// metadataDecoder decodes metadata.yaml like clusterctl.
var metadataDecoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(clusterctlv1.AddToScheme(scheme))

	return serializer.NewCodecFactory(scheme).UniversalDecoder()
}()

// ParseMetadata parses metadata.yaml, and rejects what clusterctl rejects. Errors are of type
// *InvalidError.
func ParseMetadata(data []byte) (*clusterctlv1.Metadata, error) {
	if _, err := limit.Document(string(data)); err != nil {
		return nil, &InvalidError{File: MetadataFile, Reason: err.Error(), Err: err}
	}

	metadata := &clusterctlv1.Metadata{}
	if err := runtime.DecodeInto(metadataDecoder, data, metadata); err != nil {
		return nil, invalidMetadata(data, err)
	}

	if !isMetadata(metadata.TypeMeta) {
		return nil, otherMetadata(metadata.TypeMeta)
	}

	if len(metadata.ReleaseSeries) == 0 {
		return nil, &InvalidError{
			File:   MetadataFile,
			Reason: "lists no releaseSeries, so no version has a contract; publish the provider's own metadata.yaml",
		}
	}

	return metadata, nil
}

// invalidMetadata returns the error for a file that cannot be decoded.
func invalidMetadata(data []byte, err error) error {
	var object metav1.TypeMeta
	if yaml.Unmarshal(data, &object) == nil && !isMetadata(object) {
		return otherMetadata(object)
	}

	reason := "not valid YAML: " + YAMLReason(err)

	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		reason = fmt.Sprintf("%s cannot be a %s; use a version whose file is correct", wrongType.Field, wrongType.Value)
	}

	return &InvalidError{File: MetadataFile, Reason: reason, Err: err}
}

// isMetadata reports whether clusterctl accepts the kind and the API version. Some providers give no kind.
func isMetadata(object metav1.TypeMeta) bool {
	return object.APIVersion == metadataVersion && (object.Kind == "" || object.Kind == "Metadata")
}

// otherMetadata returns the error for a file that contains an object of another kind or version.
func otherMetadata(object metav1.TypeMeta) error {
	return &InvalidError{File: MetadataFile, Reason: fmt.Sprintf(
		"has apiVersion %q and kind %q, expected %s and Metadata; clusterctl rejects all others",
		object.APIVersion, object.Kind, metadataVersion)}
}

// Contract returns the Cluster API contract of a version, for example "v1beta2". Like clusterctl,
// it fails if the version's release series is not listed or has no contract, with an *InvalidError.
func Contract(metadata *clusterctlv1.Metadata, name string) (string, error) {
	v, err := version.ParseSemantic(name)
	if err != nil {
		return "", fmt.Errorf("version %q is not a semantic version: %w", name, err)
	}

	series := metadata.GetReleaseSeriesForVersion(v)

	if series == nil {
		return "", &InvalidError{
			File: MetadataFile,
			Reason: fmt.Sprintf("has no releaseSeries for %d.%d, so the contract of %s is unknown; choose another version, "+
				"or publish its files with such a metadata.yaml elsewhere, and name that place in spec.fetchConfig",
				v.Major(), v.Minor(), name),
		}
	}

	if series.Contract == "" {
		return "", &InvalidError{File: MetadataFile, Reason: fmt.Sprintf(
			"gives no contract for the series %d.%d; add one such as v1beta2", series.Major, series.Minor)}
	}

	return series.Contract, nil
}

// goType is what libraries say about a value that has another type than a field, in terms of Go.
var goType = regexp.MustCompile(`cannot unmarshal (\w+).* into Go (?:value|struct field \w*\.?(\S*)) of type .*`)

// YAMLReason returns the message of a YAML library on one line, without its prefixes and types of Go.
func YAMLReason(err error) string {
	reason := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	reason = strings.TrimPrefix(reason, "error unmarshaling JSON: ")
	reason = strings.TrimPrefix(reason, "while decoding JSON: ")

	reason = strings.TrimPrefix(reason, "json: ")
	reason = strings.Join(strings.Fields(strings.TrimPrefix(reason, "yaml: ")), " ")

	if found := goType.FindStringSubmatch(reason); found != nil {
		return fmt.Sprintf("%s has a value of the wrong type, %s", cmp.Or(found[2], "the document"), found[1])
	}

	return reason
}
