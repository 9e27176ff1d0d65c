package harness

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
)

// These environment variables name cluster-api-operator's manager, built for this machine, and the file
// operator-components.yaml of the same version, which is in the manager's folder by default.
const (
	PeerVariable           = "PEER"
	PeerComponentsVariable = "PEER_COMPONENTS"
)

// PeerUser is the user name of cluster-api-operator in the bed's audit log.
const PeerUser = "cluster-api-operator"

// Peer is cluster-api-operator for a bed. Its manager runs as a process, whose webhooks the API server reaches by
// address; the pods of its Deployment do nothing.
type Peer struct {
	Objects []unstructured.Unstructured
	program string
	flags   []string
}

// HasPeer reports whether the environment names cluster-api-operator.
func HasPeer() bool { return os.Getenv(PeerVariable) != "" }

// NewPeer reads cluster-api-operator. Certificates of its webhooks are written to a folder.
func NewPeer(dir string) (*Peer, error) {
	program := os.Getenv(PeerVariable)
	file := cmp.Or(os.Getenv(PeerComponentsVariable), filepath.Join(filepath.Dir(program), "operator-components.yaml"))

	components, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the components of cluster-api-operator; %s names them: %w", PeerComponentsVariable, err)
	}

	objects, err := utilyaml.ToUnstructured(components)
	if err != nil {
		return nil, fmt.Errorf("read the components of cluster-api-operator in %s: %w", file, err)
	}

	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, err
	}

	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600),
	); err != nil {
		return nil, err
	}

	port, err := FreePort()
	if err != nil {
		return nil, err
	}

	for i := range objects {
		if err := pointWebhooksTo(&objects[i], fmt.Sprint("https://127.0.0.1:", port), certificate); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", file, objects[i].GetKind(), objects[i].GetName(), err)
		}
	}

	return &Peer{Objects: objects, program: program, flags: []string{
		fmt.Sprint("--webhook-port=", port), "--webhook-cert-dir=" + dir,
		"--health-addr=0", "--diagnostics-address=0", "--insecure-diagnostics", "--profiler-address=",
	}}, nil
}

// FreePort returns a port of the loopback interface that nothing listens to.
func FreePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}

	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// pointWebhooksTo replaces the Services of the webhooks in an object by an address, since no pod can be
// reached by a Service here.
func pointWebhooksTo(o *unstructured.Unstructured, address string, ca []byte) error {
	webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil || len(webhooks) == 0 {
		return err
	}

	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)

		path, _, err := unstructured.NestedString(fields, "clientConfig", "service", "path")
		if err != nil {
			return err
		}

		fields["clientConfig"] = map[string]any{
			"url": address + path, "caBundle": base64.StdEncoding.EncodeToString(ca),
		}
	}

	return unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
}

// Apply applies the objects of cluster-api-operator, as a user of kubectl does.
func (p *Peer) Apply(ctx context.Context, c client.Client) error {
	for i := range p.Objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&p.Objects[i]),
			client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", p.Objects[i].GetKind(), p.Objects[i].GetName(), err)
		}
	}

	return nil
}

// Start runs the manager against the bed as PeerUser, who may do everything.
func (p *Peer) Start(b *bed.Bed, logFile string) (*Operator, error) {
	kubeconfig, err := b.KubeconfigFor(PeerUser)
	if err != nil {
		return nil, err
	}

	return launch(b, exec.Command(p.program, p.flags...), kubeconfig, logFile)
}

// PeerResource returns the resource of cluster-api-operator that asks for the release. Its field for the Secret with
// variables has another name.
func (r *Release) PeerResource() v1alpha2.Provider {
	p := r.Resource()

	if name := p.GetSpec().SecretName; name != "" {
		p.GetSpec().SecretName = ""
		p.GetSpec().ConfigSecret = &v1alpha2.SecretReference{Name: name}
	}

	return p
}
