package fetch

import (
	"testing"

	"github.com/capstan-project/capstan/test/bed/bedtest"
)

// cluster is the API server of all tests in this package that need one.
var cluster bedtest.Shared

func TestMain(m *testing.M) { cluster.Main(m) }
