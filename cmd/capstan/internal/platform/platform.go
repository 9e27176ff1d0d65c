// Package platform finds out the versions of what providers need besides Cluster API: of Kubernetes, cert-manager
// and the operator.
package platform

import (
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/chartgen/supply/mirror/certmanager"
	"github.com/capstan-project/capstan/cmd/capstan/internal/operatorconfig"
)

// Component is a part of the platform.
type Component struct {
	Name string `json:"name"`
	// Installed version; empty if it is unknown.
	Installed string `json:"installed,omitempty"`
	// To is the newer version that this program installs; empty if there is none.
	To string `json:"to,omitempty"`
	// Upgrade says how to upgrade to it; empty if there is nothing to do.
	Upgrade string `json:"upgrade,omitempty"`
}

// Cluster is where components are looked for.
type Cluster struct {
	Config *rest.Config
	Client client.Reader
	// Namespace of the operator; empty to search all.
	Namespace string
}

// errNotInstalled means that the cluster does not have a component.
var errNotInstalled = errors.New("not installed")

// Read returns Kubernetes, and cert-manager and the operator if they are installed. Own is the version of this
// program. The error says what could not be found out, and leaves the rest usable.
func (c *Cluster) Read(ctx context.Context, own string) ([]Component, error) {
	var (
		components []Component
		errs       []error
	)

	for _, read := range []func(context.Context, string) (Component, error){c.kubernetes, c.certManager, c.operator} {
		component, err := read(ctx, own)

		switch {
		case err == nil:
			components = append(components, component)
		case !errors.Is(err, errNotInstalled):
			errs = append(errs, err)
		}
	}

	return components, errors.Join(errs...)
}

func (c *Cluster) kubernetes(context.Context, string) (Component, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return Component{}, err
	}

	version, err := d.ServerVersion()
	if err != nil {
		return Component{}, fmt.Errorf("read the version of Kubernetes: %w", err)
	}

	return Component{Name: "kubernetes", Installed: version.GitVersion}, nil
}

// The CRD and its label that tell the version of cert-manager, however that was installed.
const (
	certificates = "certificates.cert-manager.io"
	versionLabel = "app.kubernetes.io/version"
)

func (c *Cluster) certManager(ctx context.Context, _ string) (Component, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

	err := c.Client.Get(ctx, client.ObjectKey{Name: certificates}, crd)
	if apierrors.IsNotFound(err) {
		return Component{}, errNotInstalled
	}

	if err != nil {
		return Component{}, fmt.Errorf("find cert-manager: %w", err)
	}

	return newComponent("cert-manager", crd.Labels[versionLabel], certmanager.Version,
		"with its own chart or manifest, as it was installed"), nil
}

func (c *Cluster) operator(ctx context.Context, own string) (Component, error) {
	deployment, err := operatorconfig.Find(ctx, c.Client, c.Namespace)
	if errors.As(err, new(*operatorconfig.NotFoundError)) {
		return Component{}, errNotInstalled
	}

	if err != nil {
		return Component{}, fmt.Errorf("find the operator: %w", err)
	}

	return newComponent("capstan", operatorconfig.Version(deployment), own, "helm upgrade of its chart"), nil
}

// newComponent returns a component that this program would install in a version.
func newComponent(name, installed, offered, how string) Component {
	component := Component{Name: name, Installed: installed}

	before, err := semver.NewVersion(installed)
	if err != nil {
		return component
	}

	if after, err := semver.NewVersion(offered); err == nil && after.GreaterThan(before) {
		component.To, component.Upgrade = offered, how
	}

	return component
}
