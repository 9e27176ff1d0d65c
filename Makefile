# Everything a contributor or CI does is a target here; `make help` lists them.

SHELL := /usr/bin/env bash -o pipefail
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --dirty 2>/dev/null || echo v0.0.0-g$$(git describe --always --dirty 2>/dev/null || echo none))
LDFLAGS := -s -w -X main.version=$(VERSION)
BIN := $(CURDIR)/bin

# golangci-lint is built from the Go module proxy into bin/ and pinned here: its hundreds of dependencies would otherwise
# decide the versions of ours.
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)

# A folder with real provider releases in clusterctl's local-repository layout. The scenarios on real releases run when it is set.
export PROVIDERS
# How long `make demo` may take until all providers are Ready; DEMO_EXIT=1 ends it then.
export DEMO_TIMEOUT DEMO_EXIT

##@ Use

.PHONY: demo
demo: build bed-binaries ## See five Cluster API providers become five Helm releases, on a control plane of your own
	@exec $(BIN)/demo

.PHONY: bed
bed: ## Start a control plane with simulated nodes on loopback, until Ctrl-C
	@go build -o $(BIN)/bed ./test/bed/cmd/bed
	@exec $(BIN)/bed up

##@ Develop

.PHONY: build
build: ## Build the programs into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/capstan ./cmd/operator ./test/demo

.PHONY: generate
generate: ## Generate deep-copy methods
	go tool controller-gen object paths=./api/...

.PHONY: manifests
manifests: ## Generate CRDs, RBAC, and what follows from the chart: its README and config/default
	go tool controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	go tool controller-gen rbac:roleName=capstan-operator paths=./controllers/... output:rbac:artifacts:config=charts/capstan/files
	go run ./charts/generate

.PHONY: docs
docs: manifests ## Generate the reference pages in docs/reference from the CRDs and the programs' help
	go run ./docs/generate

.PHONY: fmt
fmt: ## Format the code
	gofmt -w $(shell git ls-files '*.go')

.PHONY: vet
vet: ## Look for suspicious code
	go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters (.golangci.yml)
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	GOBIN=$(BIN)/.lint go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(BIN)/.lint/golangci-lint $@ && rmdir $(BIN)/.lint

.PHONY: verify
verify: generate manifests docs ## Check that generated files are current and the tree is clean
	go mod tidy -diff
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted: run make fmt"; exit 1; }
	@test -z "$$(git status --porcelain)" || { git status --short; echo "generated files are not current, or the tree is not clean: commit the above"; exit 1; }

.PHONY: licenses
licenses: ## Check that the licenses of all dependencies are allowed
	go run ./cmd/dist licenses

# The database of vulnerabilities is asked only where it can be reached; everywhere else a line says that it was not.
VULNERABILITIES := https://vuln.go.dev
.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in what the programs really call
	@if curl -fsS --max-time 10 -o /dev/null $(VULNERABILITIES)/index/db.json 2>/dev/null; \
	then go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./cmd/...; \
	else echo "govulncheck: skipped, $(VULNERABILITIES) is not reachable"; fi

##@ Release

.PHONY: image
image: ## Make the operator's image as an OCI archive in dist/, without a container engine
	@mkdir -p dist
	go run ./cmd/dist image --version $(VERSION) --output dist/capstan-image.tar

# An image's tag, which a version with build metadata is not.
TAG ?= $(subst +,-,$(VERSION))
.PHONY: docker-build
docker-build: ## Build the same image with Docker
	docker buildx build --build-arg VERSION=$(VERSION) --build-arg SOURCE_DATE_EPOCH=$(shell git log -1 --format=%ct) --tag ghcr.io/capstan-project/capstan:$(TAG) --load .

.PHONY: release
release: ## Make all that is published, in dist/, as VERSION (default: what git describes); publishes nothing
	go run ./cmd/dist dist --version $(VERSION) --output dist

##@ Test

.PHONY: bed-binaries
bed-binaries: ## Build etcd, Kubernetes, kwok, helm and a registry into bin/ (takes minutes once)
	@go run ./test/bed/cmd/bed build

# Tests and programs are built the same way, so that each package is compiled once.
export CGO_ENABLED := 0

# The scenarios in test/e2e mostly wait, so they run beside all other tests, in two processes of their own. vet is left to
# `make lint`. `go test ./...` runs the same tests, one scenario after the other.
SCENARIOS := github.com/capstan-project/capstan/test/e2e
.PHONY: test test-packages test-scenarios
test: bed-binaries ## Run all tests: units, and scenarios on real control planes
	@$(MAKE) --no-print-directory --jobs=2 test-packages test-scenarios

test-packages:
	go test -vet=off -timeout 60m $$(go list ./... | grep -vx $(SCENARIOS))

test-scenarios:
	go tool ginkgo run --procs=2 --vet=off --ldflags='-s -w' --timeout=60m --no-color --succinct \
		--output-interceptor-mode=none ./test/e2e

# A real node needs root and some Debian packages, which are installed if they are missing. On other systems the scenarios
# are skipped, with a line that gives the reason.
NODE_NEEDS := containerd:containerd runc:runc nft:nftables conntrack:conntrack ip:iproute2 /usr/lib/cni/bridge:containernetworking-plugins
.PHONY: e2e-node
e2e-node: bed-binaries ## Run the operator's image from its chart on a real node (Linux, root)
	@for need in $(NODE_NEEDS); do command -v "$${need%%:*}" >/dev/null || missing="$$missing $${need##*:}"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing >/dev/null || true; fi
	E2E_NODE=1 go test -count 1 -timeout 30m ./test/node -v -ginkgo.v

.PHONY: e2e-flux
e2e-flux: bed-binaries ## Install the charts with Flux's own controllers (building them takes ten minutes once)
	E2E_FLUX=1 go test -count 1 -timeout 60m ./test/flux -v -ginkgo.v

.PHONY: bench
bench: build bed-binaries ## Benchmark installs against kubectl apply, mirrors against crane, and chart generation
	@go run ./test/bench
	@go run ./test/bench/mirror
	@go test -run '^$$' -bench . -benchtime 2s -cpu 1 ./chartgen ./chartgen/expr

.PHONY: bench-scale
bench-scale: build bed-binaries ## Benchmark up to 500 providers for docs/scale.md (takes a quarter of an hour)
	@go run ./test/bench/scale -plot docs/scale.svg

.PHONY: help
help: ## Show this
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
