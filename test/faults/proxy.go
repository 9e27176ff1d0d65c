package faults

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Serve starts a proxy for the API server of a configuration, with faults and the configuration's
// credentials, and writes a kubeconfig file for it, which has none. The caller closes the proxy, which ends
// all its connections.
func (f *Faults) Serve(config *rest.Config, kubeconfig string) (*http.Server, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}

	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(target) },
		Transport:     f.Wrap(transport),
		FlushInterval: -1, // watches
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // closes the connection
		},
	}}

	go func() { _ = server.Serve(listener) }()

	return server, writeKubeconfig("http://"+listener.Addr().String(), kubeconfig)
}

func writeKubeconfig(server, path string) error {
	const name = "faults"

	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: server}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	file.CurrentContext = name

	return clientcmd.WriteToFile(*file, path)
}
