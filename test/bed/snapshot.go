package bed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/test/bed/internal/filelock"
	"github.com/capstan-project/capstan/test/bed/tools"
)

// unusedLimit is how long a snapshot is kept that no bed uses.
const unusedLimit = 24 * time.Hour

// snapshot returns a folder with the data that etcd has once an API server has started for the first time and serves
// the CRDs. The first bed that needs it makes it: what an API server writes then, and each further CRD, take it
// seconds, while it starts with the data as fast as without.
func (o Options) snapshot(ctx context.Context, crds []*unstructured.Unstructured) (string, error) {
	key, err := o.snapshotKey(crds)
	if err != nil {
		return "", err
	}

	folder := filepath.Join(o.Programs.Cache(), "etcd-"+key)
	if use(folder) == nil {
		return folder, nil
	}

	lock, err := filelock.Acquire(ctx, filepath.Join(o.Programs.Cache(), "etcd.lock"), nil)
	if err != nil {
		return "", err
	}

	if use(folder) != nil { // no other process has made it meanwhile
		err = errors.Join(dropUnused(o.Programs.Cache()), o.makeSnapshot(ctx, folder))
	}

	if err := errors.Join(err, lock.Release()); err != nil {
		return "", fmt.Errorf("prepare the data of etcd: %w", err)
	}

	return folder, nil
}

// snapshotKey identifies what the data depends on.
func (o Options) snapshotKey(crds []*unstructured.Unstructured) (string, error) {
	hash := sha256.New()

	for _, program := range []string{tools.Etcd, tools.APIServer} {
		info, err := os.Stat(o.Programs.Program(program))
		if err != nil {
			return "", err
		}

		fmt.Fprintln(hash, info.Size(), info.ModTime().UnixNano())
	}

	if err := json.NewEncoder(hash).Encode(crds); err != nil {
		return "", err
	}

	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// use notes that a snapshot is used; it returns an error if there is none.
func use(folder string) error {
	now := time.Now()

	return os.Chtimes(folder, now, now)
}

// dropUnused removes the snapshots of programs and CRDs that have changed.
func dropUnused(cache string) error {
	folders, err := filepath.Glob(filepath.Join(cache, "etcd-*"))
	if err != nil {
		return err
	}

	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err == nil && time.Since(info.ModTime()) > unusedLimit {
			err = os.RemoveAll(folder)
		}

		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}

	return nil
}

// makeSnapshot writes the data of a new control plane to a folder.
func (o Options) makeSnapshot(ctx context.Context, folder string) error {
	b := &Bed{
		options: Options{
			Nodes: -1, WithoutControllers: true, WithoutCertManager: o.WithoutCertManager, CRDs: o.CRDs, WithoutAudit: true,
			LowCPU: true, Programs: o.Programs,
		},
		tools: o.Programs, launcher: newLauncher(),
	}
	b.alive, b.fail = context.WithCancelCause(context.Background())

	err := b.start(ctx)
	if err == nil {
		etcd, apiServer := b.processes[0], b.processes[1]
		end(apiServer)

		err = b.forgetNamespaces(ctx)

		end(etcd)
	}

	if err == nil {
		// etcd makes the file for what follows, of 64 MB, again.
		err = os.RemoveAll(filepath.Join(b.file(etcdFolder), "member", "wal", "0.tmp"))
	}

	unfinished := folder + ".new"
	if err == nil {
		err = errors.Join(os.RemoveAll(unfinished), os.CopyFS(unfinished, os.DirFS(b.file(etcdFolder))))
	}

	if err == nil {
		err = os.Rename(unfinished, folder)
	}

	return errors.Join(err, b.Stop())
}

// forgetNamespaces deletes all namespaces from etcd. Each API server makes those of the system again: the UID of
// kube-system identifies a cluster.
func (b *Bed) forgetNamespaces(ctx context.Context) error {
	const first, afterLast = "/registry/namespaces/", "/registry/namespaces0"

	body, err := json.Marshal(map[string]string{
		"key":       base64.StdEncoding.EncodeToString([]byte(first)),
		"range_end": base64.StdEncoding.EncodeToString([]byte(afterLast)),
	})
	if err != nil {
		return err
	}

	client := &http.Client{Transport: &http.Transport{DialContext: func(
		ctx context.Context, _, _ string,
	) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", b.file(etcdSocket))
	}}}
	defer client.CloseIdleConnections()

	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, "http://etcd/v3/kv/deleterange", bytes.NewReader(body))
	if err != nil {
		return err
	}

	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd: %s: %s", response.Status, answer)
	}

	return err
}
