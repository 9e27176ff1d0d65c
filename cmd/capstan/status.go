package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release"
)

const (
	// watchInterval is how often status -w looks.
	watchInterval = 2 * time.Second
	// objectRequests bounds the requests in flight for objects.
	objectRequests = 16
)

// statusOptions are the flags of `status`.
type statusOptions struct {
	management *management
	screen     *screen
	all, watch bool
}

func statusCommand() *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status [PROVIDER]",
		Short: "Show providers, their releases and how their objects are",
		Long: `Show providers, their releases and how their objects are, as the cluster has them now.

PROVIDER is a label (infrastructure-aws), a kind and name (infrastructureprovider/aws) or a name that only one has. Without it all
providers are shown, with only those objects and conditions that are not well.`,
		Example: `  capstan status
  capstan status infrastructure-aws -w`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.screen.open(cmd.OutOrStdout()), o.management.connect()); err != nil {
				return err
			}

			return o.run(cmd.Context(), args)
		},
	}
	o.management = managementFlags(cmd.Flags())
	o.screen = screenFlags(cmd.Flags(), "json", "yaml")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "look in all namespaces, which is the default")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on, and show it again whenever it changes")
	cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")

	return cmd
}

func (o *statusOptions) run(ctx context.Context, args []string) error {
	var before []providerView

	for {
		views, err := o.look(ctx, args)
		switch {
		case o.watch && errors.Is(err, context.Canceled):
			return nil // a person has seen enough
		case err != nil:
			return err
		}

		if before == nil || !equality.Semantic.DeepEqual(before, views) {
			if err := o.print(views, len(args) == 1, before != nil); err != nil {
				return err
			}
		}

		if before = views; !o.watch {
			return nil
		}

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchInterval):
		}
	}
}

// look reads what is to be shown.
func (o *statusOptions) look(ctx context.Context, args []string) ([]providerView, error) {
	var (
		providers []v1alpha2.Provider
		err       error
	)

	if len(args) == 1 {
		providers = make([]v1alpha2.Provider, 1)
		providers[0], err = o.management.find(ctx, args[0])
	} else {
		providers, err = o.management.providers(ctx)
	}

	if err != nil {
		return nil, err
	}

	views := make([]providerView, len(providers))

	group, ctx := errgroup.WithContext(ctx)
	for i, p := range providers {
		group.Go(func() (err error) {
			views[i], err = o.management.view(ctx, p)
			return err
		})
	}

	return views, group.Wait()
}

// providerView is what there is to say about a provider.
type providerView struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Label in clusterctl.
	Label string `json:"label"`
	// Ready is the resource's Ready in a word: Ready, Deleting, or its reason.
	Ready string `json:"ready"`
	// Wanted is spec.version, Version what is installed.
	Wanted   string                  `json:"wanted,omitempty"`
	Version  string                  `json:"version,omitempty"`
	Contract string                  `json:"contract,omitempty"`
	Chart    *v1alpha2.ChartStatus   `json:"chart,omitempty"`
	Release  *v1alpha2.ReleaseStatus `json:"release,omitempty"`
	// Suspended, Paused and RollbackTo are as in the spec.
	Suspended  bool   `json:"suspended,omitempty"`
	Paused     bool   `json:"paused,omitempty"`
	RollbackTo *int64 `json:"rollbackTo,omitempty"`
	// Objects of the release.
	Objects    []objectView       `json:"objects,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// objectView is how an object is, in kstatus' words.
type objectView struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Namespace  string        `json:"namespace,omitempty"`
	Name       string        `json:"name"`
	Status     status.Status `json:"status"`
	Message    string        `json:"message,omitempty"`
}

// view looks at one provider: at its resource, and at what the cluster has, whatever the resource's
// status says.
func (m *management) view(ctx context.Context, p v1alpha2.Provider) (providerView, error) {
	spec, stat := p.GetSpec(), p.GetStatus()

	v := providerView{
		Kind:       string(p.ProviderType()),
		Namespace:  p.GetNamespace(),
		Name:       p.GetName(),
		Label:      v1alpha2.Label(p),
		Ready:      readyWord(p),
		Wanted:     spec.Version,
		Chart:      stat.Chart,
		Suspended:  spec.Suspend,
		Paused:     spec.Paused,
		Conditions: stat.Conditions,
	}
	if stat.InstalledVersion != nil {
		v.Version = *stat.InstalledVersion
	}

	if stat.Contract != nil {
		v.Contract = *stat.Contract
	}

	if spec.Release != nil {
		v.RollbackTo = spec.Release.RollbackTo
	}

	name := v1alpha2.ReleaseName(p)

	observed, err := m.releases.Observe(ctx, types.NamespacedName{Namespace: p.GetNamespace(), Name: name})
	if err != nil {
		return v, err
	}

	newest, exists := observed.Newest()
	if !exists {
		return v, nil
	}

	v.Release = &v1alpha2.ReleaseStatus{
		Name:      name,
		Namespace: p.GetNamespace(),
		Revision:  int64(newest.Number),
		Status:    string(newest.Status),
	}
	record, err := m.releases.Read(ctx, observed.Release, newest)

	corrupt := new(release.CorruptError)
	if errors.As(err, &corrupt) {
		v.Release.Status = "unreadable"
		return v, nil
	}

	if err != nil {
		return v, err
	}

	v.Objects, err = m.objects(ctx, record.Objects)

	return v, err
}

// objects looks at each object of a release.
func (m *management) objects(ctx context.Context, recorded []*unstructured.Unstructured) ([]objectView, error) {
	views := make([]objectView, len(recorded))

	var group errgroup.Group
	group.SetLimit(objectRequests)

	for i, o := range recorded {
		group.Go(func() error {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(o.GroupVersionKind())
			err := m.client.Get(ctx, client.ObjectKeyFromObject(o), live)
			views[i] = objectView{
				APIVersion: o.GetAPIVersion(),
				Kind:       o.GetKind(),
				Namespace:  o.GetNamespace(),
				Name:       o.GetName(),
			}

			switch {
			case err == nil:
				result := health.Compute(live)
				views[i].Status, views[i].Message = result.Status, result.Message
			case apierrors.IsNotFound(err):
				views[i].Status, views[i].Message = status.NotFoundStatus, "is missing"
			default:
				views[i].Status, views[i].Message = status.UnknownStatus, err.Error()
			}

			return ctx.Err()
		})
	}

	return views, group.Wait()
}
