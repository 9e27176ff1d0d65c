package view_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	keys "github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// withoutSecrets is a cluster whose Deployments the user may read, and no Secrets.
type withoutSecrets struct{ client.Reader }

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)

func (withoutSecrets) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if o.GetObjectKind().GroupVersionKind().Kind != "Deployment" {
		return errForbidden
	}

	return nil
}

func (withoutSecrets) Observe(context.Context, types.NamespacedName) (state.History, error) {
	return state.History{}, errForbidden
}

func (withoutSecrets) Read(context.Context, types.NamespacedName, state.Revision) (*release.Record, error) {
	return nil, errForbidden
}

// TestReadOnly: without the permission for Helm's records, the resource names the release, its objects and revisions.
func TestReadOnly(t *testing.T) {
	g := NewWithT(t)
	reader := &view.Reader{Client: withoutSecrets{}, Releases: withoutSecrets{}}

	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}}
	p.Status.Release = &v1alpha2.ReleaseStatus{Name: "infrastructure-aws", Revision: 2}
	p.Status.History = []v1alpha2.ReleaseRevision{{Number: 2, Version: "v2.0.0"}, {Number: 1}}
	p.Status.Objects = keys.Inventory([]keys.Key{
		{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Name: "manager"},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Name: "credentials"},
	})

	v, err := reader.Provider(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Release.Revision).To(BeEquivalentTo(2))
	g.Expect(v.Objects).To(HaveExactElements(HaveField("Status", status.InProgressStatus)))
	g.Expect(v.Unread).To(Equal([]string{"Secret"}))

	history, err := reader.History(t.Context(), p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(history).To(HaveExactElements(HaveField("Revision", 1), HaveField("Revision", 2)))
}
