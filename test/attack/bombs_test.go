package attack

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var bombs = []bomb{
	{tried: "A ConfigMap of 30 KiB with a YAML list of 31 MiB", throw: func(a *arena) []v1alpha2.Provider {
		return a.compressed(longList(31 << 20))
	}},
	{tried: "A list of 15 MiB from a web server, compressed to 16 KiB", throw: func(a *arena) []v1alpha2.Provider {
		return a.served(serving("", longList(15<<20)))
	}},
	{tried: "Expressions that are nested 5,000 deep", throw: func(a *arena) []v1alpha2.Provider {
		nested := strings.Repeat("${A:=", 5000) + strings.Repeat("}", 5000)
		dollars := strings.Repeat("$${", 5000) + strings.Repeat("}", 5000)

		return a.compressed(a.small("").components() + "  a: '" + nested + "'\n  b: '" + dollars + "'\n")
	}},
	{tried: "YAML aliases that expand to 10^9 values", throw: func(a *arena) []v1alpha2.Provider {
		return a.compressed(a.small("").components() + "---\n" + aliases())
	}},
	{tried: "Metadata with 100,000 release series", throw: func(a *arena) []v1alpha2.Provider {
		return a.served(serving(metadata+strings.Repeat("- {major: 1, minor: 2, contract: v1beta2}\n", 100_000),
			a.small("").components()))
	}},
	{tried: "1,500 cluster templates of 1 MiB each", throw: func(a *arena) []v1alpha2.Provider {
		names := make([]string, 1500)
		for n := range names {
			names[n] = fmt.Sprintf("cluster-template-%d.yaml", n)
		}

		trust := a.trust(nil)
		server := a.server(&gitHub{p: a.small(""), templates: names, fill: []byte(strings.Repeat("# x\n", 1<<18))})

		return a.one(a.small("").from(v1alpha2.FetchConfiguration{
			URL:       server + "/o/p/releases/v1.0.0/infrastructure-components.yaml",
			SecretRef: secretOf(trust),
		}), trust)
	}},
	{tried: "A Helm record of 950 KiB that unpacks to 680 MiB", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		record := a.small("").recordOf(1, "deployed", nil)
		record.Data["release"] = encodedZeros(680 << 20)

		return a.one(a.small("").by("installer"), a.small("").configMap(), record)
	}},
	{tried: "A chart with a template that repeats to 600 MB", tolerable: true, throw: func(a *arena) []v1alpha2.Provider {
		return a.charted(map[string]string{"templates/x.yaml": `{{ repeat 600000000 "x" | len }}`})
	}},
	{tried: "Six web servers whose files never end", throw: func(a *arena) []v1alpha2.Provider {
		return a.fetching(6, endless)
	}},
	// What lasts keeps further providers with a server waiting, but only those of the tenant.
	{tried: "Five API servers that never answer", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		address := a.silent()

		return a.remotes(5, "https://"+address)
	}},
	{tried: "Five API servers whose answers never end", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		return a.remotes(5, a.server(http.HandlerFunc(endless)))
	}},
	{tried: "100 silent web servers, in one namespace", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		return a.waiting(100, 1)
	}},
	{tried: "100 silent web servers, in ten namespaces", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		return a.waiting(10, 10)
	}},
	{tried: "300 resources that name 600 namespaces", lasting: true, most: 130, throw: func(a *arena) []v1alpha2.Provider {
		return a.naming(300)
	}},
	{tried: "100 silent API servers", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		return a.several(100, func(s small) (v1alpha2.Provider, []client.Object) {
			return a.remote(s, "https://"+a.silent())
		})
	}},
	{tried: "Six API servers that fall silent once it is known which they are", lasting: true,
		throw: func(a *arena) []v1alpha2.Provider {
			return a.remotes(6, a.server(identified(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })))
		}},
	{tried: "Six API servers with 9,000 silent APIs", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		apis := "{}" + strings.Repeat(`,{"name":"a","versions":[{"groupVersion":"a/v1","version":"v1"}]}`, 9000)

		return a.remotes(6, a.server(identified(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/api":
				_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case "/apis":
				_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[`+apis+`]}`)
			default:
				<-r.Context().Done()
			}
		})))
	}},
	{tried: "An API server that answers with five million owners", throw: func(a *arena) []v1alpha2.Provider {
		return a.owned(1, "{}"+strings.Repeat(",{}", 5<<20))
	}},
	{tried: "Six API servers that answer with five million owners, in six namespaces",
		throw: func(a *arena) []v1alpha2.Provider { return a.owned(6, "{}"+strings.Repeat(",{}", 5<<20)) }},
	{tried: "Six API servers whose answers are as large as possible, in six namespaces",
		throw: func(a *arena) []v1alpha2.Provider {
			return a.owned(6, `{"name":"`+strings.Repeat("x", 15<<20)+`"}`+strings.Repeat(",{}", 99_900))
		}},
	{tried: "410 connections to the metrics without a token, each with a header of 960 KiB", tolerable: true,
		throw: func(a *arena) []v1alpha2.Provider {
			a.connect(410)
			s := a.small("")

			return a.one(s.by("installer"), s.configMap())
		}},
	{tried: "Six web servers that send a byte a second", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		return a.fetching(6, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()

				time.Sleep(time.Second)
			}
		})
	}},
	{tried: "2,000 objects in one provider", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		return a.compressed(manyObjects(a.small(""), 2000))
	}},
	{tried: "500 requests to reconcile", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		s := a.small("")
		all := a.one(s.by("installer"), s.configMap())

		for n := range 500 {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, v1alpha2.ReconcileRequestAnnotation, n)
			a.Expect(a.tenant.Patch(a.ctx, s.resource(), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		}

		return all
	}},
	{tried: "150 accounts, one after the other", lasting: true, throw: func(a *arena) []v1alpha2.Provider {
		s := a.small("")
		all := a.one(s.by("installer"), s.configMap())

		for n := range 150 {
			patch := fmt.Appendf(nil, `{"spec":{"serviceAccountName":"account-%d"}}`, n)
			a.Expect(a.tenant.Patch(a.ctx, s.resource(), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		}

		return all
	}},
}

// serving serves metadata and components, compressed. Empty metadata means those of any release.
func serving(meta, components string) http.Handler {
	if meta == "" {
		meta = metadata
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := components
		if strings.HasSuffix(r.URL.Path, "metadata.yaml") {
			text = meta
		}

		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(compress([]byte(text)))
	})
}

// endless answers with zeros until the client has enough.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")

	for zeros := []byte(strings.Repeat(" ", 64<<10)); ; {
		if _, err := w.Write(zeros); err != nil {
			return
		}
	}
}

// encodedZeros returns a number of zeros, compressed and encoded as in Helm's records.
func encodedZeros(size int64) []byte {
	reader, writer := io.Pipe()

	go func() {
		zip := gzip.NewWriter(writer)
		_, _ = io.CopyN(zip, zeros{}, size)
		_ = zip.Close()
		_ = writer.Close()
	}()

	compressed, _ := io.ReadAll(reader)

	return encoded(compressed)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// charted returns a provider of a chart with these files.
func (a *arena) charted(files map[string]string) []v1alpha2.Provider {
	p, trust := a.chart(files)

	return a.one(p, trust)
}

// silent returns the address of a server that accepts connections and says nothing.
func (a *arena) silent() string {
	listener, err := net.Listen("tcp", a.host+":0")
	a.Expect(err).NotTo(HaveOccurred())
	a.Cleanup(func() { _ = listener.Close() })

	go func() {
		var open []net.Conn // kept, so that they are not closed

		for {
			connection, err := listener.Accept()
			if err != nil {
				for _, c := range open {
					_ = c.Close()
				}

				return
			}

			open = append(open, connection)
		}
	}()

	return listener.Addr().String()
}

// remotes returns providers for the clusters of several kubeconfigs with one server.
func (a *arena) remotes(count int, server string) []v1alpha2.Provider {
	return a.several(count, func(s small) (v1alpha2.Provider, []client.Object) { return a.remote(s, server) })
}

// remote returns a provider for the cluster of a kubeconfig with a server, and what it names.
func (a *arena) remote(s small, server string) (v1alpha2.Provider, []client.Object) {
	kubeconfig := a.kubeconfig(server, nil)
	kubeconfig.ObjectMeta = named(s.namespace, s.name+"-kc")

	p := s.by("installer") // which may read the kubeconfig
	p.Spec.KubeConfig = &v1alpha2.KubeConfig{SecretRef: v1alpha2.KubeConfigSecretReference{
		LocalSecretReference: v1alpha2.LocalSecretReference{Name: kubeconfig.Name}, Key: "value",
	}}

	return p, []client.Object{kubeconfig, s.configMap()}
}

// identified is an API server that says which it is, and handles all other requests as given.
func identified(other http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")

		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			other(w, r)
			return
		}

		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"x"}}`)
	}
}

// owned returns providers in several namespaces, each for an API server whose first answer has these owners as JSON.
func (a *arena) owned(namespaces int, owners string) []v1alpha2.Provider {
	server := a.server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"x",`+
			`"ownerReferences":[`+owners+`]}}`)
	}))

	var all []v1alpha2.Provider

	for n := range namespaces {
		s := small{a.roomNamed(fmt.Sprintf("room-%s-%d", a.name, n)), fmt.Sprintf("%s-%d", a.name, n), "v1.0.0", ""}
		p, objects := a.remote(s, server)
		p.GetSpec().ServiceAccountName = "limited"
		all = append(all, a.one(p, objects...)...)
	}

	return all
}

// connect keeps a number of connections to the metrics until the attempt ends. Each sends a large part of a header, and
// then nothing; one that is closed is replaced.
func (a *arena) connect(count int) {
	header := []byte("GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 960<<10))
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	ctx, stop := context.WithCancel(a.ctx)

	var running sync.WaitGroup

	a.Cleanup(func() { stop(); running.Wait() })

	for range count {
		running.Go(func() {
			for ctx.Err() == nil {
				connection, err := dialer.DialContext(ctx, "tcp", a.metrics)
				if err != nil {
					continue
				}

				_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
				_, _ = connection.Write(header)
				_, _ = io.Copy(io.Discard, connection)
				_ = connection.Close()
			}
		})
	}
}

// naming returns providers of one source, each of which names objects in two namespaces that do not exist.
func (a *arena) naming(count int) []v1alpha2.Provider {
	s := a.small("")
	a.create(s.configMap())

	return a.several(count, func(named small) (v1alpha2.Provider, []client.Object) {
		p := named.resource()
		p.Spec.FetchConfig = s.resource().Spec.FetchConfig
		p.Spec.ConfigSecret = &v1alpha2.SecretReference{Namespace: named.name + "-a", Name: "variables"}
		p.Spec.AdditionalManifests = &v1alpha2.ConfigMapReference{Namespace: named.name + "-b", Name: "manifests"}

		return p, nil
	})
}

// waiting returns providers in several namespaces, each with a web server of its own that says nothing.
func (a *arena) waiting(count, namespaces int) []v1alpha2.Provider {
	var all []v1alpha2.Provider

	for n := range namespaces {
		namespace := tenant

		if namespaces > 1 {
			namespace = fmt.Sprintf("room-%s-%d", a.name, n)
			a.Expect(a.admin.Create(a.ctx, &corev1.Namespace{ObjectMeta: named("", namespace)})).To(Succeed())
		}

		for i := range count {
			s := small{namespace, fmt.Sprintf("%s-%d-%d", a.name, n, i), "v1.0.0", ""}
			p := s.resource()
			p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{HTTP: "https://" + a.silent()}
			all = append(all, a.one(p)...)
		}
	}

	return all
}

// fetching returns providers from a web server of the attacker.
func (a *arena) fetching(count int, handler http.HandlerFunc) []v1alpha2.Provider {
	server := a.server(handler)
	trust := a.trust(nil)
	a.create(trust)

	return a.several(count, func(s small) (v1alpha2.Provider, []client.Object) {
		return s.from(v1alpha2.FetchConfiguration{HTTP: server, SecretRef: secretOf(trust)}), nil
	})
}
