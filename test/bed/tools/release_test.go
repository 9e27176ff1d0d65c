package tools

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

const downloaded = "#!/bin/sh\necho downloaded\n"

// publisher serves files under all HTTPS addresses, by host and path.
type publisher struct {
	files map[string]string

	mu   sync.Mutex
	gets []string
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()

	file := req.Host + req.URL.Path
	p.gets = append(p.gets, file)

	content, found := p.files[file]
	if !found {
		http.NotFound(w, req)
		return
	}

	fmt.Fprint(w, content)
}

// publish makes a set download from a local server.
func publish(t *testing.T, s *Set, files map[string]string) *publisher {
	t.Helper()

	if runtime.GOOS != "linux" {
		t.Skip("releases are downloaded on Linux only")
	}

	p := &publisher{files: files}
	server := httptest.NewTLSServer(p)
	t.Cleanup(server.Close)

	client := newReleaseClient()
	transport := client.Transport.(*http.Transport)
	transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	transport.TLSClientConfig.ServerName = "example.com" // of the server's certificate
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}

	s.releases.Store(client)

	return p
}

func sum(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

// archive returns a gzipped tar archive with a program.
func archive(t *testing.T, member string) string {
	t.Helper()

	var out bytes.Buffer

	zipped := gzip.NewWriter(&out)
	members := tar.NewWriter(zipped)

	for _, name := range []string{"README.md", member} {
		if err := members.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(downloaded))}); err != nil {
			t.Fatal(err)
		}

		if _, err := members.Write([]byte(downloaded)); err != nil {
			t.Fatal(err)
		}
	}

	if err := members.Close(); err != nil {
		t.Fatal(err)
	}

	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}

	return out.String()
}

func TestBuildDownloadsReleasesWithTheRightChecksum(t *testing.T) {
	const file = "releases.example.org/v1.2.3/hello"

	with := func(sums string) map[string]string { return map[string]string{file: downloaded, file + ".sums": sums} }

	for name, c := range map[string]struct {
		files      map[string]string
		downloaded bool
		log        string
	}{
		"a checksum alone":          {with(sum(downloaded) + "\n"), true, ""},
		"a list of checksums":       {with(sum("a") + "  a\n" + sum(downloaded) + " *hello\n"), true, ""},
		"another checksum":          {with(sum("a")), false, "has the checksum"},
		"no checksum of the file":   {with(sum(downloaded) + "  a\n"), false, "no checksum of hello"},
		"a server without releases": {nil, false, "404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := checkout(t)
			s.artifacts = s.artifacts[:1]
			s.artifacts[0].release = release{
				module: "example.org/hello",
				url:    "https://releases.example.org/{version}/hello",
				sums:   "https://releases.example.org/{version}/hello.sums",
			}
			publish(t, s, c.files)

			var log bytes.Buffer
			g.Expect(s.Build(t.Context(), &log)).To(Succeed())
			g.Expect(log.String()).To(ContainSubstring(c.log))

			output, err := exec.Command(s.Program("hello")).CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(output) == "downloaded\n").To(Equal(c.downloaded), "it prints %s", output)
			g.Expect(s.stale()).To(BeEmpty())
		})
	}
}

func TestBuildCompilesEverythingOnceADownloadHasFailed(t *testing.T) {
	g := NewWithT(t)
	s := checkout(t)

	for i := range s.artifacts[:2] {
		s.artifacts[i].release = release{
			module: s.artifacts[i].pkg, url: "https://releases.example.org/a", sums: "https://releases.example.org/sums",
		}
	}

	p := publish(t, s, nil)

	var log bytes.Buffer
	g.Expect(s.Build(t.Context(), &log)).To(Succeed())
	g.Expect(p.gets).To(HaveLen(1))
	g.Expect(built(log.String())).To(ConsistOf("hello", "other", "all.yaml"))
}

func TestBuildFollowsNoRedirectToPlainHTTP(t *testing.T) {
	g := NewWithT(t)
	s := checkout(t)
	publish(t, s, nil)
	client := s.releases.Load()
	client.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusFound, Body: http.NoBody, Request: req,
			Header: http.Header{"Location": {"http://releases.example.org/hello"}},
		}, nil
	})

	_, err := s.get(t.Context(), "https://releases.example.org/hello")
	g.Expect(err).To(MatchError(ContainSubstring("redirects to http://")))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The layout of the real servers, for the versions that are pinned.
func TestReleasesOfTheBed(t *testing.T) {
	g := NewWithT(t)

	real, err := Find()
	g.Expect(err).NotTo(HaveOccurred())

	s := &Set{root: t.TempDir(), artifacts: slices.DeleteFunc(real.OfBed().artifacts, func(a artifact) bool {
		return a.release.url == ""
	})}
	g.Expect(os.Symlink(filepath.Join(real.root, "test"), filepath.Join(s.root, "test"))).To(Succeed())

	for _, name := range []string{"go.mod", "go.sum"} {
		g.Expect(os.Symlink(filepath.Join(real.root, name), filepath.Join(s.root, name))).To(Succeed())
	}

	version := func(name string) string {
		i := slices.IndexFunc(s.artifacts, func(a artifact) bool { return a.name == name })
		v, err := real.version(t.Context(), s.artifacts[i], s.artifacts[i].release.module)
		g.Expect(err).NotTo(HaveOccurred())

		return v
	}
	files := map[string]string{}
	arch := runtime.GOARCH

	etcd := fmt.Sprintf("etcd-%s-linux-%s", version(Etcd), arch)
	etcdFolder := "github.com/etcd-io/etcd/releases/download/" + version(Etcd) + "/"
	files[etcdFolder+etcd+".tar.gz"] = archive(t, etcd+"/etcd")
	files[etcdFolder+"SHA256SUMS"] = sum(files[etcdFolder+etcd+".tar.gz"]) + "  " + etcd + ".tar.gz\n"

	helm := fmt.Sprintf("get.helm.sh/helm-%s-linux-%s.tar.gz", version(Helm3), arch)
	files[helm] = archive(t, "linux-"+arch+"/helm")
	files[helm+".sha256sum"] = sum(files[helm]) + "  " + path.Base(helm) + "\n"

	for _, name := range []string{APIServer, ControllerManager, Scheduler, Kubectl} {
		file := fmt.Sprintf("dl.k8s.io/release/%s/bin/linux/%s/%s", version(name), arch, name)
		files[file], files[file+".sha256"] = downloaded, sum(downloaded)
	}

	p := publish(t, s, files)

	var log bytes.Buffer
	g.Expect(s.Build(t.Context(), &log)).To(Succeed())
	g.Expect(log.String()).NotTo(ContainSubstring("compiling"))
	g.Expect(p.gets).To(HaveLen(len(files)))

	for _, a := range s.artifacts {
		output, err := exec.Command(s.Program(a.name)).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.TrimSpace(string(output))).To(Equal("downloaded"), a.name)
	}
}
