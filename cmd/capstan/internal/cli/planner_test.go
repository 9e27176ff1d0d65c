package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// configuration writes a configuration file with a provider in the local repository of samples.
func configuration(t *testing.T) string {
	t.Helper()

	samples, err := filepath.Abs("../../../../test/data/providers")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	file := filepath.Join(t.TempDir(), "clusterctl.yaml")
	content := "providers: [{name: docker, type: InfrastructureProvider, url: \"file://" + samples +
		"/infrastructure-docker/latest/infrastructure-components.yaml\"}]"
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())

	return file
}

// operator returns the Deployment of an operator.
func operator(namespace string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace,
		Name:      "capstan",
		Labels:    map[string]string{"app.kubernetes.io/name": "capstan"},
	}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sidecar"}, {Name: "operator"}}

	return d
}

// planner returns a planner with flags in a cluster with objects, and the warnings.
func planner(t *testing.T, args []string, objects ...client.Object) (*PlannerFlags, *Options, *Cluster, func() string) {
	t.Helper()

	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := AddPlannerFlags(flags)
	NewWithT(t).Expect(flags.Parse(args)).To(Succeed())

	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	cluster := &Cluster{
		Config: &rest.Config{Host: "https://127.0.0.1:1"},
		Client: fake.NewClientBuilder().WithObjects(objects...).Build(),
	}

	return f, &Options{IOStreams: streams}, cluster, errOut.String
}

func TestPlannerVersionsWithoutFetchConfig(t *testing.T) {
	g := NewWithT(t)
	flags, options, cluster, warnings := planner(t, []string{"--config", configuration(t)},
		operator("capstan-system"), published(t, "capstan-system"))

	p, err := flags.Planner(t.Context(), options, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings()).To(BeEmpty())

	docker := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "docker", Namespace: "default"}}
	versions, err := p.Versions(t.Context(), docker)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(versions).To(ContainElement(HaveField("Version", "v1.0.0")))

	unknown := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "unknown", Namespace: "default"}}
	_, err = p.Versions(t.Context(), unknown)
	g.Expect(err).To(MatchError(ContainSubstring("unknown")))
}

func TestPlannerConfiguration(t *testing.T) {
	deployed := operator("capstan-system")
	flags := published(
		t, "capstan-system", "--image-registry=mirror:5000", "--chart-repository=oci://mirror:5000/charts")

	for name, c := range map[string]struct {
		args                  []string
		objects               []client.Object
		images, charts, warns string
	}{
		"of the operator": {
			nil, []client.Object{deployed, flags}, "mirror:5000", "oci://mirror:5000/charts", "",
		},
		"a flag takes precedence": {
			[]string{"--image-registry", "other"}, []client.Object{deployed, flags}, "other", "oci://mirror:5000/charts", "",
		},
		"no Deployment": {
			[]string{"--image-registry", "other"}, nil, "other", "",
			"Warning: the operator's configuration is unknown, so its defaults are used: there is no Deployment " +
				"with the label app.kubernetes.io/name=capstan in the cluster; " +
				"set --operator-namespace, or flags such as --image-registry\n",
		},
		"several Deployments": {
			nil, []client.Object{deployed, flags, operator("other")}, "", "",
			"several Deployments have the label app.kubernetes.io/name=capstan: capstan-system/capstan, other/capstan",
		},
		"one of several Deployments": {
			[]string{"--operator-namespace", "capstan-system"},
			[]client.Object{deployed, flags, operator("other")},
			"mirror:5000", "oci://mirror:5000/charts", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			given, options, cluster, warnings := planner(t, c.args, c.objects...)
			config, err := given.operatorConfig(t.Context(), options, cluster)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Options.ImageRegistry).To(Equal(c.images))
			g.Expect(config.ChartRepository).To(Equal(c.charts))

			if c.warns == "" {
				g.Expect(warnings()).To(BeEmpty())
			} else {
				g.Expect(warnings()).To(ContainSubstring(c.warns))
			}
		})
	}
}

// A command line of another version computes other things than the operator, and says so.
func TestPlannerOfAnotherVersion(t *testing.T) {
	for own, want := range map[string]string{
		"v1.1.0": "Warning: the operator has version v1.2.3 and this program v1.1.0: ",
		"v1.2.9": "",
		"v1.3.0": "Warning: the operator has version v1.2.3 and this program v1.3.0: ",
	} {
		g := NewWithT(t)
		flags, options, cluster, warnings := planner(t, nil, operator("capstan-system"), published(t, "capstan-system"))
		options.Version = own

		_, err := flags.Planner(t.Context(), options, cluster)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(warnings()).To(HavePrefix(want))
		g.Expect(warnings() == "").To(Equal(want == ""), own)
	}
}

// What the operator's flags refuse or provide is refused or provided in previews as well.
func TestPlannerHonoursFlags(t *testing.T) {
	g := NewWithT(t)
	flags, options, cluster, warnings := planner(t, nil, operator("capstan-system"), published(t, "capstan-system",
		"--default-service-account=installer", "--no-cross-namespace-refs", "--allowed-source-hosts=example.com"))

	p, err := flags.Planner(t.Context(), options, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings()).To(BeEmpty())

	g.Expect(p.planner.Readers.NoCrossNamespaceRefs).To(BeTrue())

	docker := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "docker", Namespace: "default"}}
	_, runs := p.planner.Readers.Account(docker)
	g.Expect(runs).To(BeTrue(), "which gets no variables of the operator")

	docker.Spec.FetchConfig = &v1alpha2.FetchConfiguration{URL: "https://example.org/latest/components.yaml"}
	_, err = p.Versions(t.Context(), docker)
	g.Expect(err).To(MatchError(ContainSubstring("--allowed-source-hosts")))
}

func TestPlannerForbidden(t *testing.T) {
	g := NewWithT(t)
	flags, options, cluster, warnings := planner(t, nil)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "", nil)
	cluster.Client = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden
		},
	}).Build()

	config, err := flags.operatorConfig(t.Context(), options, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Options.ImageRegistry).To(BeEmpty())
	g.Expect(warnings()).To(ContainSubstring("its defaults are used: list Deployments: "))
}

// A folder of the operator's Pod is not read here.
func TestPlannerDirectory(t *testing.T) {
	g := NewWithT(t)
	flags, options, cluster, _ := planner(t, nil, operator("capstan-system"), published(t, "capstan-system"))

	p, err := flags.Planner(t.Context(), options, cluster)
	g.Expect(err).NotTo(HaveOccurred())

	docker := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "docker", Namespace: "default"}}
	docker.Spec.FetchConfig = &v1alpha2.FetchConfiguration{Directory: "/providers-of-the-pod"}

	_, err = p.Versions(t.Context(), docker)
	g.Expect(err).To(MatchError(And(
		ContainSubstring("folder /providers-of-the-pod/infrastructure-docker does not exist"),
		ContainSubstring("spec.fetchConfig.directory is a folder of the operator's Pod, which only the operator can read"))))
}
