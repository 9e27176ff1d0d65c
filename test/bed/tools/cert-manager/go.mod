module github.com/capstan-project/capstan/test/bed/tools/cert-manager

go 1.26.0

// Only files of this module are used, so `go mod tidy` would drop it.
require github.com/cert-manager/cert-manager v1.21.2
