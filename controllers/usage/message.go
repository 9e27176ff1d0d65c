package usage

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Usage are the kinds that have objects or could not be read, those with the most objects first.
type Usage []Kind

// Kind is the result for one kind.
type Kind struct {
	// Name of the CRD, e.g. "awsclusters.infrastructure.cluster.x-k8s.io".
	Name string
	// Count is the number of objects. Beyond a hundred it is the API server's estimate.
	Count int64
	// Examples are some of the objects, as namespace/name, with a remark if they are being deleted. It
	// is empty if the objects must not be named.
	Examples []string
	// Clusters are some of the Clusters that the objects belong to, as namespace/name, sorted. Like the
	// examples, they are of the first objects.
	Clusters []string
	// Problem is why the objects could not all be read, and what to do about it; empty if they were.
	Problem string
}

// add counts an object.
func (k *Kind) add(o *metav1.PartialObjectMetadata) {
	k.Count++
	k.addCluster(o)

	if len(k.Examples) == maxExamples {
		return
	}

	example := strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
	if !o.DeletionTimestamp.IsZero() {
		example += " (being deleted, blocked by its finalizers " + strings.Join(o.Finalizers, ", ") + ")"
	}

	k.Examples = append(k.Examples, example)
}

// addCluster adds the Cluster that an object belongs to, by the label that Cluster API requires.
func (k *Kind) addCluster(o *metav1.PartialObjectMetadata) {
	name := o.Labels[clusterNameLabel]
	if k.Name == clusterCRD {
		name = o.Name
	}

	cluster := o.Namespace + "/" + name

	at, listed := slices.BinarySearch(k.Clusters, cluster)
	if name != "" && o.Namespace != "" && !listed && len(k.Clusters) < maxClusters {
		k.Clusters = slices.Insert(k.Clusters, at, cluster)
	}
}

// String describes the objects that were found.
func (k *Kind) String() string {
	text := fmt.Sprintf("%d %s", k.Count, k.Name)
	if len(k.Examples) > 0 {
		text += fmt.Sprintf(" (e.g. %s)", strings.Join(k.Examples, ", "))
	}

	switch n := len(k.Clusters); {
	case n == 0 || k.Name == clusterCRD: // the objects are the Clusters
	case n == 1:
		text += " of Cluster " + k.Clusters[0]
	case n <= namedClusters:
		text += " of Clusters " + strings.Join(k.Clusters, ", ")
	default:
		text += " of Clusters " + strings.Join(k.Clusters[:namedClusters], ", ") + " and others"
	}

	return text
}

// Unused reports whether it is certain that there are no objects.
func (u Usage) Unused() bool { return len(u) == 0 }

const (
	// clusterNameLabel has the name of the Cluster, in the namespace of the object, that an object belongs to.
	clusterNameLabel = "cluster.x-k8s.io/cluster-name"
	// clusterCRD is the CRD of Clusters themselves.
	clusterCRD = "clusters.cluster.x-k8s.io"
	// maxClusters is how many Clusters a kind names, and namedClusters how many a message does.
	maxClusters   = 20
	namedClusters = 2
)

// maxKinds is how many kinds a message names. A provider may have dozens.
const maxKinds = 5

// Message describes the objects that exist and the kinds that could not be read.
func (u Usage) Message() string {
	var (
		total         int64
		found, failed []string
	)

	for _, k := range u {
		total += k.Count

		if k.Count > 0 {
			found = append(found, k.String())
		}

		if k.Problem != "" {
			failed = append(failed, fmt.Sprintf("%s (%s)", k.Name, k.Problem))
		}
	}

	var parts []string

	switch {
	case total == 1:
		parts = append(parts, "1 object still exists: "+enumerate(found))
	case total > 1:
		parts = append(parts, fmt.Sprintf("%d objects still exist: %s", total, enumerate(found)))
	}

	if len(failed) > 0 {
		parts = append(parts, "it is unknown whether there are "+enumerate(failed))
	}

	return strings.Join(parts, "; ")
}

// enumerate names the first kinds, and how many more there are.
func enumerate(kinds []string) string {
	if len(kinds) <= maxKinds {
		return strings.Join(kinds, ", ")
	}

	return fmt.Sprintf("%s and objects of %d more kinds", strings.Join(kinds[:maxKinds], ", "), len(kinds)-maxKinds)
}
