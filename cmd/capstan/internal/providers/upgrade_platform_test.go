package providers

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/chartgen/supply/mirror/certmanager"
	"github.com/capstan-project/capstan/controllers"
)

func TestPlatform(t *testing.T) {
	g := NewWithT(t)

	crd := func(version string) client.Object {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
			Name: certificates, Labels: map[string]string{versionLabel: version},
		}}
	}
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "capstan-system", Name: "capstan",
		Labels: map[string]string{"app.kubernetes.io/name": "capstan", versionLabel: "v0.9.0"},
	}}

	scheme := runtime.NewScheme()
	g.Expect(appsv1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())

	in := func(objects ...client.Object) *platform {
		return &platform{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
	}

	older, err := in(crd("v1.13.2")).certManager(t.Context(), "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(older).To(And(HaveField("Installed", "v1.13.2"), HaveField("To", certmanager.Version)))

	for _, version := range []string{certmanager.Version, "v99.0.0", ""} {
		current, err := in(crd(version)).certManager(t.Context(), "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(current).To(Equal(component{Name: "cert-manager", Installed: version}))
	}

	_, err = in().certManager(t.Context(), "")
	g.Expect(err).To(MatchError(errNotInstalled))

	outdated, err := in(operator).operator(t.Context(), "v1.0.0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(outdated).To(And(HaveField("Installed", "v0.9.0"), HaveField("To", "v1.0.0")))

	development, err := in(operator).operator(t.Context(), "dev")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(development).To(Equal(component{Name: "capstan", Installed: "v0.9.0"}))

	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capstan-system", Name: controllers.PublishedName},
		Data:       map[string]string{"version": "v0.9.5", "flags": "{}"},
	}
	current, err := in(operator, published).operator(t.Context(), "v0.9.5")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(current).To(Equal(component{Name: "capstan", Installed: "v0.9.5"}), "the label is that of its chart")

	_, err = in().operator(t.Context(), "v1.0.0")
	g.Expect(err).To(MatchError(errNotInstalled))
}
