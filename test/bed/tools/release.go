package tools

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"
)

// release is where a project publishes a program for Linux. In url, member and sums, {version} and
// {arch} are replaced.
type release struct {
	module string // whose version is that of the release
	url    string // the program, or a gzipped tar archive with it
	member string // the name of the program in the archive; empty if url is the program itself
	sums   string // SHA-256 checksums, with file names unless there is only one
}

// Limits of what servers send: bytes, and redirects of a request.
const (
	mostProgram   = 512 << 20
	mostSums      = 1 << 20
	mostRedirects = 5
)

var publishedFor = []string{"amd64", "arm64"}

// newReleaseClient returns a client that notices within seconds that a server cannot be reached.
func newReleaseClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: 10 * time.Second,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Scheme != "https" || len(via) > mostRedirects {
				return fmt.Errorf("%s redirects to %s", via[0].URL, req.URL)
			}

			return nil
		},
		Timeout: 10 * time.Minute, // of one file
	}
}

// downloads reports whether Build tries to download a's release.
func (s *Set) downloads(a artifact) bool {
	return s.releases.Load() != nil && a.release.url != "" &&
		runtime.GOOS == "linux" && slices.Contains(publishedFor, runtime.GOARCH)
}

// download writes the program a, as its project has published it, to the file out.
func (s *Set) download(ctx context.Context, a artifact, out string) error {
	version, err := s.version(ctx, a, a.release.module)
	if err != nil {
		return err
	}

	replace := strings.NewReplacer("{version}", version, "{arch}", runtime.GOARCH)
	url := replace.Replace(a.release.url)

	sums, err := s.sums(ctx, replace.Replace(a.release.sums))
	if err != nil {
		return err
	}

	want, err := sumOf(path.Base(url), sums)
	if err != nil {
		return err
	}

	file := out + ".download"
	defer os.Remove(file)

	if err := s.save(ctx, url, want, file); err != nil {
		return err
	}

	if a.release.member != "" {
		return extract(file, replace.Replace(a.release.member), out)
	}

	return errors.Join(os.Chmod(file, 0o755), os.Rename(file, out))
}

func (s *Set) get(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}

	client := s.releases.Load()
	if client == nil {
		return nil, errors.New("another download has failed")
	}

	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}

	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, res.Status), res.Body.Close())
	}

	return res.Body, nil
}

func (s *Set) sums(ctx context.Context, url string) (string, error) {
	body, err := s.get(ctx, url)
	if err != nil {
		return "", err
	}
	defer body.Close()

	text, err := io.ReadAll(io.LimitReader(body, mostSums))
	if err != nil {
		return "", fmt.Errorf("%s: %w", url, err)
	}

	return string(text), nil
}

// sumOf returns the checksum of a file, from a list as sha256sum prints it or from a checksum alone.
func sumOf(file, sums string) (string, error) {
	for line := range strings.Lines(sums) {
		fields := strings.Fields(line)
		if len(fields) == 0 || len(fields[0]) != hex.EncodedLen(sha256.Size) {
			continue
		}

		if len(fields) == 1 || strings.TrimPrefix(fields[1], "*") == file {
			return fields[0], nil
		}
	}

	return "", fmt.Errorf("no checksum of %s is published", file)
}

// save downloads a file, which must have a certain checksum.
func (s *Set) save(ctx context.Context, url, want, file string) (err error) {
	body, err := s.get(ctx, url)
	if err != nil {
		return err
	}
	defer body.Close()

	to, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(body, mostProgram)); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}

	if have := hex.EncodeToString(hash.Sum(nil)); have != want {
		return fmt.Errorf("%s has the checksum %s instead of %s", url, have, want)
	}

	return nil
}

// extract writes a member of an archive to the file out.
func extract(archive, member, out string) (err error) {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()

	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", path.Base(archive), err)
	}

	members := tar.NewReader(unzipped)

	for {
		header, err := members.Next()
		if err != nil {
			return fmt.Errorf("find %s in its release: %w", member, err)
		}

		if header.Name == member {
			break
		}
	}

	to, err := os.OpenFile(out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	_, err = io.Copy(to, io.LimitReader(members, mostProgram))

	return err
}
