// Package view reads what users want to know about a provider: its status, the health of its objects and its
// history. The command line prints it, and the status page shows it.
//
// Its types are what leaves the program. They list their fields one by one, and none of them can contain the
// value of a variable or of a Secret.
package view

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
)

// Provider is the status of a provider.
type Provider struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Label is clusterctl's.
	Label string `json:"label"`
	// Ready is the status of the condition Ready: True, False or Unknown.
	Ready   string  `json:"ready"`
	Verdict Verdict `json:"verdict"`
	// Wanted is spec.version, Chosen the version that it resolved to; empty if that is not known yet. Version is the
	// installed one.
	Wanted   string                  `json:"wanted,omitempty"`
	Chosen   string                  `json:"chosen,omitempty"`
	Version  string                  `json:"version,omitempty"`
	Contract string                  `json:"contract,omitempty"`
	Chart    *v1alpha2.ChartStatus   `json:"chart,omitempty"`
	Release  *v1alpha2.ReleaseStatus `json:"release,omitempty"`
	// Suspended, Paused and RollbackTo are from the spec.
	Suspended  bool `json:"suspended,omitempty"`
	Paused     bool `json:"paused,omitempty"`
	RollbackTo *int `json:"rollbackTo,omitempty"`
	// Ignored are the parts of the spec that have no effect, with the reasons.
	Ignored []string `json:"ignored,omitempty"`
	// UpgradePolicy is from the spec; nil for none.
	UpgradePolicy *v1alpha2.UpgradePolicy `json:"upgradePolicy,omitempty"`
	// AutomaticUpgrade is the one that follows, and the last one.
	AutomaticUpgrade *v1alpha2.AutomaticUpgradeStatus `json:"automaticUpgrade,omitempty"`
	// Objects of the release. Unread are the kinds of those that are left out, because the user may not read them.
	Objects    []Object           `json:"objects,omitempty"`
	Unread     []string           `json:"unread,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Upgrades are the newer versions that fit the contracts in use.
	Upgrades []v1alpha2.AvailableUpgrade `json:"availableUpgrades,omitempty"`
	// DependsOn are the labels of the providers in spec.dependsOn.
	DependsOn []string `json:"dependsOn,omitempty"`
	// Created is when the resource was created.
	Created metav1.Time `json:"created,omitzero"`
	// Remote is set if the provider is installed in another cluster, whose objects are not read.
	Remote bool `json:"remote,omitempty"`
	// Cluster identifies that other cluster by the Secret with its kubeconfig, as namespace/name/key. Providers of the
	// same cluster can have different ones.
	Cluster string `json:"cluster,omitempty"`
	// Details are read for a single provider only.
	Details *Details `json:"details,omitempty"`
}

// Object is the health of an object, in the terms of kstatus.
type Object struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Namespace  string        `json:"namespace,omitempty"`
	Name       string        `json:"name"`
	Status     status.Status `json:"status"`
	Message    string        `json:"message,omitempty"`
}

// IsHealthy reports whether the object is healthy.
func (o Object) IsHealthy() bool { return o.Status == status.CurrentStatus }

// FullName returns the namespace, if there is one, and the name of the object.
func (o Object) FullName() string {
	if o.Namespace == "" {
		return o.Name
	}

	return o.Namespace + "/" + o.Name
}

// NewProvider returns the part of the status that is in the resource. It needs no requests.
func NewProvider(p v1alpha2.Provider) Provider {
	spec := p.GetSpec()
	stat := p.GetStatus()
	ready := v1alpha2.FindCondition(stat.Conditions, v1alpha2.ReadyCondition)

	v := Provider{
		APIVersion: v1alpha2.GroupVersion.String(),
		Kind:       string(p.ProviderType()),
		Namespace:  p.GetNamespace(),
		Name:       p.GetName(),
		Label:      v1alpha2.Label(p),
		Ready:      string(cmp.Or(ready.Status, metav1.ConditionUnknown)),
		Verdict:    VerdictOf(p),
		Wanted:     spec.Version,
		Chosen:     ranges.Exact(spec.Version, stat.DesiredVersion),
		Version:    ptr.Deref(stat.InstalledVersion, ""),
		Contract:   ptr.Deref(stat.Contract, ""),
		Chart:      withoutCredentials(stat.Chart),
		Release:    stat.Release,
		Suspended:  spec.Suspend,
		Paused:     spec.Paused,
		Ignored:    stat.Ignored,
		Conditions: stat.Conditions,
		Upgrades:   stat.AvailableUpgrades,
		DependsOn:  spec.DependsOn,
		Created:    p.GetCreationTimestamp(),
		Remote:     spec.KubeConfig != nil,
		Cluster:    v1alpha2.Cluster(p),

		UpgradePolicy:    spec.UpgradePolicy,
		AutomaticUpgrade: stat.AutomaticUpgrade,
	}

	if spec.Release != nil {
		v.RollbackTo = spec.Release.RollbackTo
	}

	return v
}

// withoutCredentials returns the chart without the credentials that the URL of its source may have. It does not change
// its argument.
func withoutCredentials(chart *v1alpha2.ChartStatus) *v1alpha2.ChartStatus {
	if chart == nil {
		return nil
	}

	chart = chart.DeepCopy()
	chart.Source = urlWithoutCredentials(chart.Source)

	return chart
}

// urlWithoutCredentials returns a URL without the user information and the query, which may have a token. Any other
// text is returned as it is; what cannot be parsed as a URL, but has its form, is empty.
func urlWithoutCredentials(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}

	u, err := url.Parse(text)
	if err != nil {
		return ""
	}

	u.User, u.RawQuery = nil, ""

	return u.String()
}

// Newest returns the newest version that the provider can be upgraded to; "-" for none.
func (p Provider) Newest() string {
	if len(p.Upgrades) == 0 {
		return "-"
	}

	return p.Upgrades[len(p.Upgrades)-1].Version
}

// negativeConditions are the conditions that are True when something is wrong.
var negativeConditions = []string{
	v1alpha2.ReconcilingCondition,
	v1alpha2.StalledCondition,
	v1alpha2.DriftedCondition,
	v1alpha2.ChangesPendingCondition,
	v1alpha2.InputsUnavailableCondition,
}

// IsGood reports whether a condition of a provider reports no problem.
func IsGood(c metav1.Condition) bool {
	isTrue := c.Status == metav1.ConditionTrue
	return isTrue != slices.Contains(negativeConditions, c.Type)
}
