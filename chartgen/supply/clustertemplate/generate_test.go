package clustertemplate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/clustertemplate"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

const samples = "testdata/infrastructure-sample"

func sampleSet(t *testing.T) *clustertemplate.Set {
	t.Helper()
	set, err := clustertemplate.FromFolder(t.Context(), samples, clustertemplate.Infrastructure{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return set
}

// environmentOnly returns variables without a configuration file.
func environmentOnly(t *testing.T) *clustertemplate.Variables {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())

	variables, err := clustertemplate.NewVariables("")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return variables
}

func TestGenerateAddsClasses(t *testing.T) {
	for flavor, want := range map[string][]string{
		"topology":         {"ClusterClass team/small", "SampleClusterTemplate team/small", "Cluster team/dev"},
		"topology-v1beta1": {"ClusterClass classes/small", "SampleClusterTemplate classes/small", "Cluster team/dev"},
		"twice": {
			"ClusterClass team/small",
			"SampleClusterTemplate team/small",
			"Cluster team/dev-blue",
			"Cluster team/dev-green",
		},
		"own-class":     {"ClusterClass team/own", "Cluster team/dev"},
		"foreign-class": {"Cluster team/dev"},
	} {
		t.Run(flavor, func(t *testing.T) {
			g := NewWithT(t)
			manifests, err := sampleSet(t).Generate(t.Context(), request(flavor), environmentOnly(t), nil)
			g.Expect(err).NotTo(HaveOccurred())
			objects, err := utilyaml.ToUnstructured(manifests.YAML)
			g.Expect(err).NotTo(HaveOccurred())

			var got []string
			for _, o := range objects {
				got = append(got, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
			}

			g.Expect(got).To(Equal(want))

			if flavor == "foreign-class" {
				g.Expect(manifests.MissingClasses).To(ConsistOf(types.NamespacedName{Namespace: "team", Name: "foreign"}))
			} else {
				g.Expect(manifests.MissingClasses).To(BeEmpty())
			}
		})
	}
}

func TestGenerateErrors(t *testing.T) {
	negative := new(int64(-1))

	for name, test := range map[string]struct {
		environment map[string]string
		change      func(*clustertemplate.Request)
		want        string
	}{
		"unknown flavor": {
			change: func(r *clustertemplate.Request) { r.Flavor = "eks" },
			want: `infrastructure-sample v1.1.0 has no flavor "eks"; choose a flavor: none for the default, foreign-class, ` +
				`no-class, own-class, secret, topology, topology-v1beta1, twice, wrong-cluster, wrong-expression`,
		},
		"several required variables": {
			want: "infrastructure-sample v1.1.0: cluster-template.yaml needs a value for REGION, SSH_KEY_NAME; set each as " +
				"an environment variable or in the configuration file",
		},
		"namespace": {
			change: func(r *clustertemplate.Request) { r.Namespace = "Team" },
			want:   `namespace "Team" is not valid: `,
		},
		"cluster name": {
			change: func(r *clustertemplate.Request) { r.Name = "dev_1" },
			want:   `cluster name "dev_1" is not valid: `,
		},
		"Kubernetes version": {
			change: func(r *clustertemplate.Request) { r.KubernetesVersion = "latest" },
			want:   `kubernetes version "latest" is not a semantic version; write for example v1.34.0`,
		},
		"no control plane machine": {
			change: func(r *clustertemplate.Request) { r.ControlPlaneMachines = new(int64) },
			want:   "the number of control plane machines is 0; set it to 1 or more",
		},
		"fewer than no worker machines": {
			change: func(r *clustertemplate.Request) { r.WorkerMachines = negative },
			want:   "the number of worker machines is -1; set it to 0 or more",
		},
		"machines that are not a number": {
			environment: map[string]string{"CONTROL_PLANE_MACHINE_COUNT": "three"},
			want: "the number of control plane machines, variable CONTROL_PLANE_MACHINE_COUNT, is not a whole number; " +
				"set it to 1 or more",
		},
		"expression": {
			change: func(r *clustertemplate.Request) { r.Flavor = "wrong-expression" },
			want:   "infrastructure-sample v1.1.0: cluster-template-wrong-expression.yaml line 4: expression ${CLUSTER_NAME: ",
		},
		"topology without a class": {
			change: func(r *clustertemplate.Request) { r.Flavor = "no-class" },
			want: "infrastructure-sample v1.1.0: cluster-template-no-class.yaml: the topology of Cluster dev names no " +
				"ClusterClass; give it one",
		},
		"Cluster of wrong types": {
			environment: map[string]string{"PAUSED": "hunter2"},
			change:      func(r *clustertemplate.Request) { r.Flavor = "wrong-cluster" },
			want: "infrastructure-sample v1.1.0: cluster-template-wrong-cluster.yaml: the Cluster dev does not fit " +
				"cluster.x-k8s.io/v1beta2; ",
		},
		"value that breaks the YAML": {
			environment: map[string]string{"PASSWORD": "'hunter2: [\nhunter2"},
			change:      func(r *clustertemplate.Request) { r.Flavor = "secret" },
			want:        "infrastructure-sample v1.1.0: cluster-template-secret.yaml: the 2nd document, line ",
		},
		"value that is an alias": {
			environment: map[string]string{"PASSWORD": "*hunter2"},
			change:      func(r *clustertemplate.Request) { r.Flavor = "secret" },
			want: "infrastructure-sample v1.1.0: cluster-template-secret.yaml: the 2nd document is not a YAML object " +
				"once the variables are substituted; ",
		},
		"value that is a document": {
			environment: map[string]string{"PASSWORD": "\n---\nhunter2"},
			change:      func(r *clustertemplate.Request) { r.Flavor = "secret" },
			want: "infrastructure-sample v1.1.0: cluster-template-secret.yaml: the 3rd document is not a YAML object " +
				"once the variables are substituted; ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for variable, value := range test.environment {
				t.Setenv(variable, value)
			}

			r := request("")
			if test.change != nil {
				test.change(&r)
			}

			_, err := sampleSet(t).Generate(t.Context(), r, environmentOnly(t), nil)
			g.Expect(err).To(MatchError(HavePrefix(test.want)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("hunter2")), "values may be credentials")
		})
	}
}

func TestGenerateErrorTypes(t *testing.T) {
	g := NewWithT(t)
	_, err := sampleSet(t).Generate(t.Context(), request(""), environmentOnly(t), nil)

	var missing *clustertemplate.MissingVariablesError
	g.Expect(errors.As(err, &missing)).To(BeTrue())
	g.Expect(missing.Names).To(Equal([]string{"REGION", "SSH_KEY_NAME"}))

	_, err = sampleSet(t).Generate(t.Context(), request("none"), environmentOnly(t), nil)

	var notFound *source.NotFoundError
	g.Expect(errors.As(err, &notFound)).To(BeTrue())

	_, err = sampleSet(t).Generate(t.Context(), request("wrong-expression"), environmentOnly(t), nil)

	var invalid *bundle.InvalidError
	g.Expect(errors.As(err, &invalid)).To(BeTrue())
	g.Expect(invalid.Line).To(Equal(4))
}

func TestSetVariables(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("REGION", "eu-west-1") // a set variable is still a required one, as in clusterctl
	t.Setenv("CONTROL_PLANE_MACHINE_COUNT", "3")
	list, err := sampleSet(t).Variables(request(""), environmentOnly(t))
	g.Expect(err).NotTo(HaveOccurred())

	var got []string

	for _, v := range list {
		if v.Default == nil {
			got = append(got, v.Name)
		} else {
			got = append(got, v.Name+" = "+*v.Default)
		}
	}

	g.Expect(got).To(Equal([]string{
		`BASTION_NAME = "${REGION}-bastion"`,
		"CLUSTER_NAME = dev",
		"CONTROL_PLANE_MACHINE_COUNT = 3",
		"KUBERNETES_VERSION = v1.34.0",
		"NAMESPACE = team",
		`NOTE = "it's free"`,
		`POD_CIDR = "[\"192.168.0.0/16\"]"`,
		"REGION",
		"SSH_KEY_NAME",
		"WORKER_MACHINE_COUNT = 2",
	}))
}

func TestVariablesPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "variables")
	content := "file: from file\nBoth: from file\nNUMBER: 1000000\nSWITCH: true\nNOTHING:\nEMPTY: ''\n"
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	t.Setenv("BOTH", "from environment")
	t.Setenv("EMPTY_HERE", "")
	t.Setenv("SET", "from environment")

	variables, err := clustertemplate.NewVariables(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	variables.Set("SET", "set")

	for name, want := range map[string]string{
		"FILE":       "from file",
		"BOTH":       "from environment",
		"SET":        "set",
		"NUMBER":     "1000000",
		"SWITCH":     "true",
		"EMPTY":      "",
		"EMPTY_HERE": "",
	} {
		NewWithT(t).Expect(variables.Get(name)).To(Equal(want), name)
	}

	for _, name := range []string{"NOTHING", "UNKNOWN"} {
		_, err := variables.Get(name)
		NewWithT(t).Expect(err).To(MatchError("variable "+name+" is not set"), name)
	}
}

func TestNewVariablesFindsUserConfiguration(t *testing.T) {
	for _, folder := range []string{".config/cluster-api", ".cluster-api"} {
		g := NewWithT(t)
		home := t.TempDir()
		t.Setenv("HOME", home)
		t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
		g.Expect(os.MkdirAll(filepath.Join(home, folder), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(home, folder, "clusterctl.yaml"), []byte("REGION: "+folder), 0o600)).To(Succeed())

		variables, err := clustertemplate.NewVariables("")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(variables.Get("REGION")).To(Equal(folder))
	}
}

func TestNewVariablesErrors(t *testing.T) {
	folder := t.TempDir()
	for content, want := range map[string]string{
		"A: b\nC: hunter2: d\n": "configuration file FILE line 2: cannot be read; write each variable as NAME: value on a " +
			"line of its own",
		"hunter2": "configuration file FILE line 1: cannot be read; write each variable as NAME: value on a " +
			"line of its own",
	} {
		file := filepath.Join(folder, "variables.yaml")
		NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		_, err := clustertemplate.NewVariables(file)
		NewWithT(t).Expect(err).To(MatchError(strings.ReplaceAll(want, "FILE", file)))
	}

	_, err := clustertemplate.NewVariables(filepath.Join(folder, "none.yaml"))
	NewWithT(t).Expect(err).To(MatchError(os.ErrNotExist))
}
