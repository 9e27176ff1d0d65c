package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

// routed makes the API server call webhooks at the endpoints of their Services, since nothing
// answers at ClusterIPs.
const routed = "--enable-aggregator-routing=true"

// webhooks replaces programs that do not run on a bed: the conversion and admission webhooks of the
// providers' managers, at the Services of the releases, and cert-manager's injector of
// certificates.
type webhooks struct {
	address string
	port    int32
	bundle  []byte
	client  client.WithWatch
	convert func(ctx context.Context, o *unstructured.Unstructured, to string) (*unstructured.Unstructured, error)

	mu        sync.Mutex
	forgotten []string // versions that the managers no longer support
	converted int
}

// startWebhooks starts the webhooks of the Services, which are named as name.namespace.
func startWebhooks(ctx context.Context, w *world, services ...string) *webhooks {
	GinkgoHelper()

	h := &webhooks{address: machineAddress(), convert: convertCore}

	var names []string
	for _, service := range services {
		names = append(names, service+".svc")
	}

	certificate, key, err := cert.GenerateSelfSignedCertKey(names[0], nil, names)
	Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(certificate, key)
	Expect(err).NotTo(HaveOccurred())

	h.bundle = certificate
	h.client, err = client.NewWithWatch(w.bed.Config(), client.Options{Scheme: harness.Scheme()})
	Expect(err).NotTo(HaveOccurred())

	listener, err := tls.Listen(
		"tcp",
		net.JoinHostPort(h.address, "0"),
		&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	)
	Expect(err).NotTo(HaveOccurred())

	h.port = int32(listener.Addr().(*net.TCPAddr).Port)

	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()

	running, stop := context.WithCancel(context.WithoutCancel(ctx))

	DeferCleanup(func() error { stop(); return server.Close() })

	for _, list := range []client.ObjectList{
		&apiextensionsv1.CustomResourceDefinitionList{},
		&corev1.ServiceList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&admissionregistrationv1.MutatingWebhookConfigurationList{},
	} {
		h.attend(running, list)
	}

	return h
}

// machineAddress returns an address of this machine that an endpoint may have: not a loopback
// address.
func machineAddress() string {
	GinkgoHelper()

	addresses, err := net.InterfaceAddrs()
	Expect(err).NotTo(HaveOccurred())

	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		if ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil && ip.IP.String() != outside {
			return ip.IP.String()
		}
	}

	Skip("this machine has only loopback addresses, which endpoints cannot have")

	return ""
}

// selectorless is a patch for providers whose webhooks are called: their Services must not select
// pods.
var selectorless = v1alpha2.Patch{
	Patch:  `[{"op": "remove", "path": "/spec/selector"}]`,
	Target: &v1alpha2.PatchTarget{Kind: "Service"},
}

// forget makes the managers fail on objects in versions that they no longer support.
func (h *webhooks) forget(versions ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.forgotten = append(h.forgotten, versions...)
}

// conversions returns the number of objects converted so far.
func (h *webhooks) conversions() int {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.converted
}

// attend watches one kind and does with each object what the missing programs would do.
func (h *webhooks) attend(ctx context.Context, list client.ObjectList) {
	GinkgoHelper()

	changes, err := h.client.Watch(ctx, list)
	Expect(err).NotTo(HaveOccurred())

	go func() {
		defer GinkgoRecover()
		defer changes.Stop()

		for {
			select {
			case <-ctx.Done():
				return
			case event, ok := <-changes.ResultChan():
				if !ok {
					return
				}

				if o, ok := event.Object.(client.Object); ok {
					if err := h.serve(ctx, o); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
						GinkgoLogr.Error(err, "cannot play the cluster's part", "object", o.GetName())
					}
				}
			}
		}
	}()
}

// serve adds an endpoint to a Service, or injects the certificate's authority where cert-manager
// would.
func (h *webhooks) serve(ctx context.Context, o client.Object) error {
	if service, ok := o.(*corev1.Service); ok {
		if len(service.Spec.Selector) > 0 || !strings.HasSuffix(service.Name, "webhook-service") {
			return nil
		}

		ready := true
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: service.Namespace,
				Name:      service.Name,
				Labels:    map[string]string{discoveryv1.LabelServiceName: service.Name},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{h.address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}},
			},
			Ports: []discoveryv1.EndpointPort{{Name: &service.Spec.Ports[0].Name, Port: &h.port}},
		}

		return client.IgnoreAlreadyExists(h.client.Create(ctx, slice))
	}

	if o.GetAnnotations()["cert-manager.io/inject-ca-from"] == "" {
		return nil
	}

	before := o.DeepCopyObject().(client.Object)
	for _, c := range clientConfigs(o) {
		*c = h.bundle
	}

	return h.client.Patch(ctx, o, client.MergeFrom(before), client.FieldOwner("cert-manager-cainjector"))
}

// clientConfigs returns the certificate authorities of an object's webhooks.
func clientConfigs(o client.Object) (bundles []*[]byte) {
	switch o := o.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		if c := o.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			bundles = append(bundles, &c.Webhook.ClientConfig.CABundle)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			bundles = append(bundles, &o.Webhooks[i].ClientConfig.CABundle)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			bundles = append(bundles, &o.Webhooks[i].ClientConfig.CABundle)
		}
	}

	return bundles
}

// ServeHTTP answers the API server: it admits all objects, and converts them.
func (h *webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := struct {
		metav1.TypeMeta `json:",inline"`
		Request         struct {
			UID               string                      `json:"uid"`
			DesiredAPIVersion string                      `json:"desiredAPIVersion"`
			Objects           []unstructured.Unstructured `json:"objects"`
		} `json:"request"`
	}{}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}

	response := map[string]any{"uid": review.Request.UID, "allowed": true}
	if review.Kind == "ConversionReview" {
		delete(response, "allowed")

		objects, err := h.convertAll(r.Context(), review.Request.Objects, review.Request.DesiredAPIVersion)

		response["convertedObjects"], response["result"] = objects, metav1.Status{Status: metav1.StatusSuccess}
		if err != nil {
			response["result"] = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		}
	}

	_ = json.NewEncoder(w).
		Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": response})
}

func (h *webhooks) convertAll(
	ctx context.Context,
	objects []unstructured.Unstructured,
	to string,
) ([]*unstructured.Unstructured, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	var converted []*unstructured.Unstructured

	for i := range objects {
		for _, version := range h.forgotten {
			if strings.HasSuffix(objects[i].GetAPIVersion(), "/"+version) || strings.HasSuffix(to, "/"+version) {
				return nil, fmt.Errorf("%s is not supported by this manager", version)
			}
		}

		o, err := h.convert(ctx, &objects[i], to)
		if err != nil {
			return nil, err
		}

		converted = append(converted, o)
		h.converted++
	}

	return converted, nil
}
