package providers

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/facts"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// archive is what is written into a tar file.
type archive struct {
	files []debugFile
	// missing describes what could not be read.
	missing []string
}

// debugFile is a file of the archive.
type debugFile struct {
	name    string
	content []byte
}

func (a *archive) add(name string, content []byte) {
	a.files = append(a.files, debugFile{name, content})
}

// lacks records that something is not in the archive, and why.
func (a *archive) lacks(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}

	a.missing = append(a.missing, what)
}

// write writes the archive into a new file, which only its owner may read.
func (a *archive) write(destination string, now time.Time) (err error) {
	if len(a.missing) > 0 {
		a.add("not-included.txt", []byte(cli.Text(strings.Join(a.missing, "\n"))+"\n"))
	}

	slices.SortFunc(a.files, func(a, b debugFile) int { return cmp.Compare(a.name, b.name) })

	file, err := os.OpenFile(destination, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists; set --destination to another file", destination)
	}

	if err != nil {
		return err
	}

	compressed := gzip.NewWriter(file)
	w := tar.NewWriter(compressed)

	defer func() {
		if err = errors.Join(err, w.Close(), compressed.Close(), file.Close()); err != nil {
			err = errors.Join(err, os.Remove(destination))
		}
	}()

	root := strings.TrimSuffix(filepath.Base(destination), ".tar.gz")

	for _, f := range a.files {
		header := &tar.Header{
			Name: root + "/" + f.name, Mode: 0o600, Size: int64(len(f.content)), ModTime: now, Typeflag: tar.TypeReg,
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}

		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}

	return nil
}

// hidden replaces what may be a credential.
const hidden = "(hidden)"

// hiddenFields are fields whose values may have credentials at any depth.
var hiddenFields = map[string]bool{"variables": true, "values": true, "patches": true, "manifestPatches": true}

// withoutValues returns an object without what may have credentials: values of variables, Helm values, patches, and
// values of environment variables. The structure and the names stay.
func withoutValues(o runtime.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}

	u := &unstructured.Unstructured{Object: content}
	u.SetManagedFields(nil)

	annotations := u.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	u.SetAnnotations(annotations)

	content["spec"], content["status"] = hideFields(content["spec"]), hideFields(content["status"])

	return content, nil
}

// hideFields returns a value of an object without what may be a credential.
func hideFields(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			switch {
			case hiddenFields[name]:
				value[name] = hideAll(field)
			case name == "env":
				hideEnvironment(field)
			default:
				value[name] = hideFields(field)
			}
		}
	case []any:
		for i, item := range value {
			value[i] = hideFields(item)
		}
	case string:
		if strings.Contains(value, "://") && !strings.ContainsAny(value, " \n") {
			return facts.WithoutCredentials(value)
		}
	}

	return value
}

// hideEnvironment hides the values of environment variables. References to Secrets and ConfigMaps stay.
func hideEnvironment(variables any) {
	list, _ := variables.([]any)

	for _, item := range list {
		if variable, is := item.(map[string]any); is && variable["value"] != nil {
			variable["value"] = hidden
		}
	}
}

// hideAll replaces all texts, numbers and booleans of a value.
func hideAll(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			value[name] = hideAll(field)
		}

		return value
	case []any:
		for i, item := range value {
			value[i] = hideAll(item)
		}

		return value
	case nil:
		return nil
	default:
		return hidden
	}
}
