// Package bedtest starts test beds for tests, and stops them when the tests end. It also runs programs for these tests.
package bedtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/test/bed"
)

// TB is the part of testing.TB that this package needs; GinkgoT returns one, too.
type TB interface {
	Helper()
	Cleanup(func())
	TempDir() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// APIServer returns the options of etcd and an API server with these CustomResourceDefinitions, and without an audit
// log.
func APIServer(crds ...*unstructured.Unstructured) bed.Options {
	return bed.Options{Nodes: -1, WithoutCertManager: true, WithoutControllers: true, WithoutAudit: true, CRDs: crds}
}

// StartAPIServer starts what APIServer describes for one test, or for one suite if BeforeSuite calls it.
func StartAPIServer(t TB, crds ...*unstructured.Unstructured) *bed.Bed {
	t.Helper()

	return Start(t, APIServer(crds...))
}

// Start starts a control plane for one test, or for one suite or container of specs if their
// BeforeSuite or BeforeAll calls it.
func Start(t TB, options bed.Options) *bed.Bed {
	t.Helper()

	b, err := start(options)
	if err != nil {
		t.Fatalf("start a test bed: %v", err)
	}

	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Errorf("stop the test bed: %v", err)
		}
	})

	return b
}

// start starts a control plane. Tests run many of them, on a few processors.
func start(options bed.Options) (*bed.Bed, error) {
	options.LowCPU = true

	return bed.Start(context.Background(), options)
}

// Shared is a control plane that all tests of a package share. The first test that needs it starts
// it, and Main stops it.
type Shared struct {
	// Options returns those of the control plane; nil is for those of APIServer, without CustomResourceDefinitions.
	Options func() bed.Options

	once sync.Once
	bed  *bed.Bed
	err  error
}

// Get returns the control plane, and starts it the first time.
func (s *Shared) Get(t TB) *bed.Bed {
	t.Helper()

	s.once.Do(func() {
		options := APIServer()
		if s.Options != nil {
			options = s.Options()
		}

		s.bed, s.err = start(options)
	})

	if s.err != nil {
		t.Fatalf("start the test bed of this package: %v", s.err)
	}

	return s.bed
}

// Main runs the tests of a package, stops the control plane and calls the other cleanup functions.
// TestMain calls it. It does not return.
func (s *Shared) Main(m *testing.M, cleanups ...func() error) {
	code := m.Run()

	if s.bed != nil {
		cleanups = append(cleanups, s.bed.Stop)
	}

	for _, cleanup := range cleanups {
		if err := cleanup(); err != nil {
			fmt.Fprintln(os.Stderr, err)

			code = max(code, 1)
		}
	}

	os.Exit(code)
}
