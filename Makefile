# All tasks of contributors and CI; `make help` lists them.

SHELL := /usr/bin/env bash -o pipefail
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --dirty 2>/dev/null || echo v0.0.0-g$$(git describe --always --dirty 2>/dev/null || echo none))
LDFLAGS := -s -w -X main.version=$(VERSION)
BIN := $(CURDIR)/bin

# Tests, tools and programs are compiled with the same flags as the programs of the test bed, so that each package is compiled once.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -gcflags=all=-dwarf=false
# Compilers, linkers, tests and what they run collect garbage less often, which saves compilers an eighth of their CPU
# time, and linkers a third.
SPARING := GOGC=400 GOMEMLIMIT=1GiB

# These tools are pinned here rather than in go.mod, where their hundreds of dependencies would affect the versions of ours.
GOLANGCI_LINT := $(BIN)/golangci-lint-v2.15.0
GO_LICENSES := $(BIN)/go-licenses-v2.0.1
GORELEASER := $(BIN)/goreleaser-v2.15.1
KO := $(BIN)/ko-v0.19.1

# go-licenses recognizes the standard library by GOROOT. It warns of each package with assembly code, which is not shown.
LICENSES := GOROOT="$$(go env GOROOT)" $(GO_LICENSES) --logtostderr=false --stderrthreshold=ERROR --log_file=/dev/null

# A folder with real provider releases in the layout of a clusterctl local repository. Tests that need real releases run only if it is set.
export PROVIDERS
# cluster-api-operator's manager, built for this machine, with operator-components.yaml of the same version in its folder or
# named by PEER_COMPONENTS. Tests and benchmarks that need it run only if it is set.
export PEER PEER_COMPONENTS

# BEFORE is the operator of another build, which benchmarks measure in the same run, and which a scenario replaces by this
# one, with its CRDs in the folder BEFORE_CRDS. BENCH are flags of the benchmark.
export BEFORE BEFORE_CRDS
# DEMO_TIMEOUT is how long `make demo` waits for all providers to be Ready. With DEMO_EXIT=1 it exits then.
export DEMO_TIMEOUT DEMO_EXIT

PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)

##@ Use

.PHONY: demo
demo: ## Install five Cluster API providers on a local control plane
	@test -x $(BIN)/demo || echo "• Compiling Capstan, then downloading a control plane, or compiling it without internet access. The first time, this \
	takes about $$(((5 + $(PROCESSORS) - 1) / $(PROCESSORS))) or $$(((11 + $(PROCESSORS) - 1) / $(PROCESSORS))) minutes on $(PROCESSORS) processors"
	@$(MAKE) --no-print-directory build
	@exec $(BIN)/demo

.PHONY: bed
bed: ## Run a local control plane with simulated nodes until Ctrl-C
	@$(SPARING) go build -o $(BIN)/bed ./test/bed/cmd/bed
	@exec $(BIN)/bed up

##@ Develop

.PHONY: build
build: ## Build the programs into bin/
	$(SPARING) go build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/capstan ./cmd/operator ./test/demo

.PHONY: generate
generate: ## Generate deep-copy methods and the list of clusterctl's providers
	go tool controller-gen object paths=./api/...
	UPDATE_PROVIDERS=1 go test ./chartgen/catalog -run '^TestClusterctlsEntries$$' -count 1

.PHONY: manifests
manifests: ## Generate CRDs, RBAC, the chart's README and the kustomize bases
	go tool controller-gen crd paths=./api/... output:crd:artifacts:config=charts/capstan/crds
	go tool controller-gen rbac:roleName=capstan-operator paths=./controllers/... output:rbac:artifacts:config=charts/capstan/files
	go run ./charts/generate

.PHONY: docs
docs: manifests ## Generate the reference pages in docs/reference
	go run ./docs/generate
	UPDATE_REFERENCE=1 go test ./cmd/capstan ./cmd/operator -run '^TestReference$$' -count 1
	UPDATE_MESSAGES=1 go test ./controllers/provider -run '^TestMessages$$' -count 1

.PHONY: fmt
fmt: ## Format the code
	gofmt -w $(shell git ls-files '*.go')

.PHONY: vet
vet: ## Run go vet
	go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint
	$(GOLANGCI_LINT) run ./...

# Each tool is built once, in a module of its own: `go install` would ask for a list of versions, which not every proxy has.
# The version is what follows the last hyphen in the name of its file.
$(GOLANGCI_LINT): PACKAGE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(GO_LICENSES): PACKAGE := github.com/google/go-licenses/v2
$(GORELEASER): PACKAGE := github.com/goreleaser/goreleaser/v2
$(KO): PACKAGE := github.com/google/ko
$(GOLANGCI_LINT) $(GO_LICENSES) $(GORELEASER) $(KO):
	@rm -rf $@.d && mkdir -p $@.d
	cd $@.d && go mod init tool && go get -tool $(PACKAGE)@$(lastword $(subst -, ,$@))
	cd $@.d && $(SPARING) go build -ldflags='-s -w' -o $@ $(PACKAGE)
	@rm -rf $@.d

.PHONY: verify
verify: generate manifests docs ## Check that generated files are up to date and the tree is clean
	go mod tidy -diff
	git apply --check test/helm4/switch.patch
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted: run make fmt"; exit 1; }
	@test -z "$$(git status --porcelain)" || { git status --short; echo "generated files are outdated or the tree is not clean: commit the files above"; exit 1; }

.PHONY: licenses
licenses: $(GO_LICENSES) ## Check the licenses of all dependencies, on each operating system
	@for system in linux darwin windows; do \
	GOOS=$$system $(LICENSES) check ./cmd/... --disallowed_types=forbidden,restricted,unknown || exit 1; done

# Without internet access, set VULNERABILITY_DB to a copy of the database, such as file:///srv/vulndb.
VULNERABILITY_DB ?= https://vuln.go.dev
.PHONY: vulnerabilities
vulnerabilities: ## Check for known vulnerabilities with govulncheck, and fail if the code calls one
	@curl -fsS --max-time 30 -o /dev/null $(VULNERABILITY_DB)/index/db.json || { \
	echo "NOT CHECKED for vulnerabilities: $(VULNERABILITY_DB)/index/db.json cannot be read; set VULNERABILITY_DB to another database" >&2; exit 1; }
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 -db $(VULNERABILITY_DB) ./cmd/...

##@ Release

# Archives do not depend on the machine: they contain no times and owners.
TAR := tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX

.PHONY: image
image: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
image: $(KO) ## Build the images of the operator and of the command line as OCI archives in dist/, without a container engine
	@rm -rf $(BIN)/image && mkdir -p dist
	$(call build-image,operator,capstan)
	$(call build-image,capstan,cli)

# Builds the image of a program with the name of a repository.
define build-image
	VERSION=$(VERSION) KO_DOCKER_REPO=ghcr.io/capstan-project/$(2) $(KO) build ./cmd/$(1) --bare --push=false \
		--oci-layout-path=$(BIN)/image/$(2) --sbom-dir=dist --image-label=org.opencontainers.image.version=$(VERSION) \
		--image-label=org.opencontainers.image.source=https://github.com/capstan-project/capstan
	$(TAR) -C $(BIN)/image/$(2) -cf dist/$(2)-image.tar .
endef

# The version is that of the tag, the chart and the change log. With SNAPSHOT=1, they may differ, and Syft is not needed.
.PHONY: release
release: $(GORELEASER) $(GO_LICENSES) ## Build the artifacts of a release into dist/, without publishing them
	@rm -rf dist $(BIN)/licenses && mkdir dist
	$(LICENSES) save ./cmd/capstan --save_path=$(BIN)/licenses
	$(GORELEASER) release --clean --skip=publish$(if $(SNAPSHOT), --snapshot --skip=sbom)
	find $(BIN)/release -maxdepth 1 -type f -name 'capstan_*' -exec cp {} dist/ ';'
	cp $(BIN)/release/krew/capstan.yaml dist/capstan.krew.yaml
	cp $(BIN)/release/homebrew/Casks/capstan.rb dist/
	$(MAKE) --no-print-directory image
	$(TAR) -C charts --exclude='*.gotmpl' --exclude=kustomization.yaml -czf dist/capstan-$(VERSION:v%=%).tgz capstan
	kubectl kustomize config/default >dist/capstan.yaml
	go run ./charts/schemas
	awk '/^## / { found = $$2 == "$(VERSION)"; next } found' CHANGELOG.md >dist/CHANGELOG.md
	$(if $(SNAPSHOT),,grep -qx 'appVersion: $(VERSION)' charts/capstan/Chart.yaml && test -s dist/CHANGELOG.md)
	cd dist && sha256sum * >$(BIN)/checksums.txt && mv $(BIN)/checksums.txt .

##@ Test

.PHONY: bed-binaries
bed-binaries: ## Build etcd, Kubernetes, kwok, helm and a registry into bin/ (takes minutes once)
	@go run ./test/bed/cmd/bed build

# The programs that tests run are linked once, and without a version: a warning of `capstan` depends on that. Without
# CAPSTAN_BIN, as with a plain `go test`, each test program links its own.
CAPSTAN_BIN := $(BIN)/test
.PHONY: test-binaries
test-binaries:
	@$(SPARING) go build -ldflags='-s -w' -o $(CAPSTAN_BIN)/ ./cmd/capstan ./cmd/operator
test-packages test-scenarios attack kubernetes-versions compat real-upgrades census: test-binaries
test test-changed attack kubernetes-versions compat real-upgrades census: export CAPSTAN_BIN := $(CAPSTAN_BIN)

# The scenarios in test/e2e mostly wait, so they run beside all other tests, in three processes of their own and in random
# order. vet is left to `make lint`. `go test ./...` runs the same tests, one scenario after the other. With TEST_PROFILE=1,
# tables of the processor time by program and by suite follow.
SCENARIOS := github.com/capstan-project/capstan/test/e2e
REPORTS := $(BIN)/reports
.PHONY: test test-packages test-scenarios
test: bed-binaries ## Run the tests: units, and scenarios on real control planes
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	@status=0; $(if $(TEST_PROFILE),go run ./test/profile) $(MAKE) --no-print-directory --jobs=2 test-packages test-scenarios || status=$$?; \
	go run ./test/skipped $(REPORTS)/*.json; exit $$status

test-packages:
	@$(SPARING) go run gotest.tools/gotestsum@v1.13.0 --format=pkgname --hide-summary=skipped --jsonfile=$(REPORTS)/packages.json \
		-- -vet=off -timeout 60m $$(go list ./... | grep -vx $(SCENARIOS))

test-scenarios:
	@$(SPARING) go tool ginkgo run --procs=3 --randomize-all --vet=off --ldflags='-s -w' --timeout=60m --no-color --succinct \
		--output-interceptor-mode=none --output-dir=$(REPORTS) --json-report=scenarios.json ./test/e2e

# The scenarios that a change selects are in a table in test/changed. CI runs all tests.
BASE ?= main
.PHONY: test-changed
test-changed: bed-binaries test-binaries ## Run the tests that depend on what differs from main (or BASE)
	@packages=$$(go run ./test/changed -base $(BASE) -packages) && scenarios=$$(go run ./test/changed -base $(BASE) -scenarios) && \
	if [ -n "$$packages" ]; then $(SPARING) go test -vet=off -timeout 60m $$packages; fi && \
	if [ -n "$$scenarios" ]; then $(SPARING) go tool ginkgo run --procs=3 --vet=off --ldflags='-s -w' --timeout=60m --succinct $$scenarios ./test/e2e; fi

# One after the other; with `make -k` all of them, although one fails. What they need beyond Go, the scenarios skip without.
.PHONY: nightly
nightly: export DEMO_EXIT := 1
nightly: export SNAPSHOT := 1
nightly: attack chaos compat real-upgrades census helm4 kubernetes-versions e2e-node e2e-capi e2e-flux demo release bench bench-scale ## Run what takes too long for each change (takes hours)

# A scenario of test/e2e takes the pictures while it checks the pages.
.PHONY: screenshots
screenshots: bed-binaries ## Take the pictures of the status page in docs/images; needs Chromium
	SCREENSHOTS=$(CURDIR)/docs/images go test ./test/e2e -vet=off -count 1 -timeout 15m -ginkgo.focus 'The status page' -ginkgo.fail-on-empty

# Each attempt prints a line. ATTACK_LOGS may be a folder for the operator's log.
.PHONY: attack
attack: bed-binaries ## Attack the operator as a tenant, a publisher and a server would
	@cd test/attack && CROWDS=1 go test -count 1 -timeout 30m

# Each folder kubernetes-VERSION of test/bed/tools pins another version, which is built once into a folder of bin.
KUBERNETES_VERSIONS ?= $(patsubst test/bed/tools/kubernetes-%,%,$(wildcard test/bed/tools/kubernetes-*))
.PHONY: kubernetes-versions
kubernetes-versions: ## Test with control planes of the other supported versions of Kubernetes (builds each once)
	@status=0; for version in $(KUBERNETES_VERSIONS); do export KUBERNETES=$$version; echo "Kubernetes $$version"; \
	go run ./test/bed/cmd/bed build && go test -vet=off -count 1 -timeout 30m ./test/chart || status=1; \
	go test -vet=off -count 1 -timeout 45m ./test/e2e -ginkgo.label-filter=kubernetes -ginkgo.fail-on-empty || status=1; \
	done; exit $$status

.PHONY: helm4
helm4: bed-binaries ## Test the engine with Helm 4's library, and the operator's chart with its program
	@test/helm4/run

.PHONY: compat
compat: bed-binaries ## Test resources of cluster-api-operator and commands of clusterctl
	COMPAT=1 go test -vet=off -count 1 -timeout 60m ./test/compat

.PHONY: real-upgrades
real-upgrades: bed-binaries ## Install, upgrade, roll back and remove all real releases, and adopt those of clusterctl (needs PROVIDERS)
	REAL_UPGRADES=1 go test -vet=off -count 1 -timeout 60m ./test/e2e -ginkgo.focus-file '_real' -ginkgo.fail-on-empty

# CENSUS is a folder like PROVIDERS, and PROVIDERS by default. CENSUS_INSTALL=1 also installs, upgrades, rolls back and
# removes each provider; core is that of PROVIDERS.
CENSUS ?= $(PROVIDERS)
.PHONY: census
census: bed-binaries ## Build, lint, compare with clusterctl and render all releases of PROVIDERS (or CENSUS), and print a table
	@status=0; export CENSUS=$(abspath $(CENSUS)) CENSUS_INSTALL=$(CENSUS_INSTALL); \
	(cd chartgen && go test -vet=off -count 1 -timeout 60m -run '^TestCensus$$') || status=1; \
	if [ -n "$$CENSUS_INSTALL" ]; then \
	(cd test/e2e && go test -vet=off -count 1 -timeout 120m -ginkgo.focus-file census_test -ginkgo.fail-on-empty) || status=1; \
	fi; exit $$status

# A walk that fails prints its steps and how to repeat it. CHAOS_LOGS may be a folder for the operators' logs. A step takes
# about half a second, and may take more than two.
CHAOS_SEED ?= 1 2 3
CHAOS_STEPS ?= 500
CHAOS_CROWD ?= 300
.PHONY: chaos
chaos: bed-binaries ## Take random walks with real operators, under faults, and install a crowd (takes half an hour)
	@cd test/chaos && for seed in $(CHAOS_SEED); do \
	CHAOS_SEED=$$seed CHAOS_STEPS=$(CHAOS_STEPS) go test -count 1 -timeout $$((10 + $(CHAOS_STEPS) / 25))m -run TestChaos || exit 1; done
	@cd test/chaos && CHAOS_SEED=1 CHAOS_CROWD=$(CHAOS_CROWD) go test -count 1 -timeout 60m -run 'TestCrowd|TestSlowCluster'

# A real node needs root and some Debian packages, which are installed if they are missing. On other systems the scenarios
# are skipped, with a line that gives the reason.
NODE_NEEDS := runc:runc nft:nftables conntrack:conntrack ip:iproute2 /usr/lib/cni/bridge:containernetworking-plugins
.PHONY: node-packages e2e-node
node-packages:
	@for need in $(NODE_NEEDS); do command -v "$${need%%:*}" >/dev/null || missing="$$missing $${need##*:}"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing >/dev/null || true; fi

e2e-node: bed-binaries node-packages ## Test the operator's image and chart on a real node (requires Linux and root)
	E2E_NODE=1 go test -count 1 -timeout 30m ./test/node -v -ginkgo.v

# Needs PROVIDERS, and MANAGERS: a folder of static programs named as their images, such as capd-manager:v1.13.5. Programs
# that Go modules have are built into bin/managers.
export MANAGERS
.PHONY: e2e-capi
e2e-capi: bed-binaries node-packages ## Upgrade cert-manager's and Cluster API's own managers on a real node (requires Linux and root)
	E2E_CAPI=1 go test -count 1 -timeout 60m ./test/capi -v -ginkgo.v

.PHONY: bench-availability
bench-availability: bed-binaries node-packages ## Measure the gaps of webhooks for docs/high-availability.md (needs what e2e-capi needs, and an idle machine)
	@rm -rf bin/gaps && mkdir -p bin/gaps
	E2E_CAPI=1 HIGH_AVAILABILITY=false GAPS=$(CURDIR)/bin/gaps go test -count 1 -timeout 60m ./test/capi -v -ginkgo.v
	E2E_CAPI=1 HIGH_AVAILABILITY=true GAPS=$(CURDIR)/bin/gaps go test -count 1 -timeout 60m ./test/capi -v -ginkgo.v

.PHONY: e2e-flux
e2e-flux: bed-binaries ## Install the charts with Flux's own controllers (building them takes ten minutes once)
	E2E_FLUX=1 go test -count 1 -timeout 60m ./test/flux -v -ginkgo.v

.PHONY: bench
bench: build bed-binaries ## Benchmark the life of five providers next to kubectl apply, PEER and BEFORE (BENCH='-rounds 5')
	@go run ./test/bench $(BENCH)

.PHONY: bench-scale
bench-scale: build bed-binaries ## Benchmark up to 500 providers for docs/performance.md (takes a quarter of an hour)
	@go run ./test/bench -sizes 1,10,50,100,250,500

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
