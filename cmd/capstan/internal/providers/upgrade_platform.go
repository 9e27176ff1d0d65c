package providers

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
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers"
)

// component is a part of the platform, which is what providers need besides Cluster API.
type component struct {
	Name string `json:"name"`
	// Installed version; empty if it is unknown.
	Installed string `json:"installed,omitempty"`
	// To is the newer version that this program installs; empty if there is none.
	To string `json:"to,omitempty"`
	// Upgrade says how to upgrade to it; empty if there is nothing to do.
	Upgrade string `json:"upgrade,omitempty"`
}

// platform is where components are looked for.
type platform struct {
	Config *rest.Config
	Client client.Reader
	// Namespace of the operator; empty to search all.
	Namespace string
}

// errNotInstalled means that the cluster does not have a component.
var errNotInstalled = errors.New("not installed")

// read returns Kubernetes, and cert-manager and the operator if they are installed. Own is the version of this
// program. The error says what could not be found out, and leaves the rest usable.
func (p *platform) read(ctx context.Context, own string) ([]component, error) {
	var (
		components []component
		errs       []error
	)

	for _, read := range []func(context.Context, string) (component, error){p.kubernetes, p.certManager, p.operator} {
		part, err := read(ctx, own)

		switch {
		case err == nil:
			components = append(components, part)
		case !errors.Is(err, errNotInstalled):
			errs = append(errs, err)
		}
	}

	return components, errors.Join(errs...)
}

func (p *platform) kubernetes(context.Context, string) (component, error) {
	d, err := discovery.NewDiscoveryClientForConfig(p.Config)
	if err != nil {
		return component{}, err
	}

	version, err := d.ServerVersion()
	if err != nil {
		return component{}, fmt.Errorf("read the version of Kubernetes: %w", err)
	}

	return component{Name: "kubernetes", Installed: version.GitVersion}, nil
}

// The CRD and its label that tell the version of cert-manager, however that was installed.
const (
	certificates = "certificates.cert-manager.io"
	versionLabel = "app.kubernetes.io/version"
)

func (p *platform) certManager(ctx context.Context, _ string) (component, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))

	err := p.Client.Get(ctx, client.ObjectKey{Name: certificates}, crd)
	if apierrors.IsNotFound(err) {
		return component{}, errNotInstalled
	}

	if err != nil {
		return component{}, fmt.Errorf("find cert-manager: %w", err)
	}

	return newComponent("cert-manager", crd.Labels[versionLabel], certmanager.Version,
		"with its own chart or manifest, as it was installed"), nil
}

func (p *platform) operator(ctx context.Context, own string) (component, error) {
	deployment, err := cli.FindOperator(ctx, p.Client, p.Namespace)
	if errors.As(err, new(*cli.NoOperatorError)) {
		return component{}, errNotInstalled
	}

	if err != nil {
		return component{}, fmt.Errorf("find the operator: %w", err)
	}

	published, err := controllers.ReadPublished(ctx, p.Client, deployment.Namespace)
	if err != nil && !apierrors.IsForbidden(err) {
		return component{}, err
	}

	installed := cli.OperatorVersion(deployment, published).Version

	return newComponent("capstan", installed, own, "helm upgrade of its chart"), nil
}

// newComponent returns a component that this program would install in a version.
func newComponent(name, installed, offered, how string) component {
	part := component{Name: name, Installed: installed}

	before, err := semver.NewVersion(installed)
	if err != nil {
		return part
	}

	if after, err := semver.NewVersion(offered); err == nil && after.GreaterThan(before) {
		part.To, part.Upgrade = offered, how
	}

	return part
}
