# drover: every task of the repository. `make` alone prints this list.
# Everything that is built goes below build/ and cdk.out*/; `make clean` removes it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# jsii says at length that Node 20 is no longer maintained; it is the oldest that drover supports.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20

# As the functions run on Lambda. One setting for everything, so that what is vetted, built and tested shares its compiled packages.
export CGO_ENABLED := 0

HOST_ARCH := $(shell go env GOARCH)
# What Lambda calls the host's architecture.
LAMBDA_ARCH := $(if $(filter arm64,$(HOST_ARCH)),arm64,x86_64)
FUNCTIONS := $(patsubst functions/%/main.go,%,$(wildcard functions/*/main.go))

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[1m%-12s\033[0m %s\n", $$1, $$2 }' Makefile

# ── Use ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

.PHONY: run
run: local ## Create the demo cluster in a local account, replace a pool's nodes, upgrade it, move three more clusters by a rollout, and stop (about two minutes, once built)
	@build/drover local --demo examples/clusters/demo.yaml --release examples/releases/1.35-1.yaml --roll workers --upgrade examples/releases/1.36-1.yaml --fleet examples/fleet --once

.PHONY: up
up: local ## Start the local account and keep it up
	@build/drover local

# When make deploy asks before it changes permissions: never, broadening or any-change. YES=1 answers every question.
APPROVAL := broadening
# The folder of a cloud assembly to deploy, such as build/cdk.out of make local. By default, the app is compiled and synthesized for AWS.
APP :=
DEPLOY := go run ./cmd/deploy

.PHONY: bootstrap
bootstrap: node_modules ## Prepare the AWS account and region of your credentials for the CDK: once, before the first deployment
	@$(DEPLOY) bootstrap

.PHONY: deploy
deploy: $(if $(APP),,functions-arm64) node_modules ## Deploy drover to the AWS account of your credentials (APPROVAL=never asks nothing)
	@$(DEPLOY) deploy --approval $(APPROVAL) $(if $(APP),--app $(APP))

.PHONY: destroy
destroy: $(if $(APP),,functions-arm64) node_modules ## Remove drover; clusters, specs and statuses stay (YES=1 asks nothing)
	@$(DEPLOY) destroy $(if $(APP),--app $(APP))

.PHONY: destroy-all
destroy-all: $(if $(APP),,functions-arm64) node_modules ## Remove drover and its buckets, once no cluster exists (YES=1 asks nothing)
	@$(DEPLOY) destroy-all $(if $(APP),--app $(APP))

# The newer of the two Kubernetes versions of make verify, such as 1.36. By default, EKS's default version.
KUBERNETES :=
VERIFY = build/verify --dir build/first-hour $(if $(APP),--app $(APP)) $(if $(KUBERNETES),--kubernetes $(KUBERNETES))

.PHONY: verify verify-clean
verify: verify-commands $(if $(APP),,functions-arm64) node_modules ## Prove drover in the AWS account of your credentials, and remove it
	@$(VERIFY)
verify-clean: verify-commands $(if $(APP),,functions-arm64) node_modules ## Remove what a make verify left that did not end
	@$(VERIFY) --clean

.PHONY: verify-commands
verify-commands: build/drover
	@go build -o build/ ./cmd/deploy ./cmd/verify

# ── Test ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Packages whose tests wait for processes: drover's functions, control planes, Node. Each needs what `make local` builds. The longest is first.
WAITING := local/account local/testkit/worlds/deploy local/testkit/live/kube cmd/internal/worlds local/testkit/live/eks infra \
	local/kubernetes cmd/drover-local local/kubernetes/workload
# Prints those of the packages $(1) that do not wait.
computing = go list $(1) | grep -vxE '.*/drover/($(subst $() ,|,$(strip $(WAITING))))'

# Where tests write temporary files: into memory if 4 GB of it are free there and programs may run from it. On disk, the
# files of S3 and etcd cost up to 40 % of a test's processor time. Go itself compiles on disk.
MEMORY := $(shell findmnt -bno FSTYPE,OPTIONS,AVAIL -T /dev/shm 2>/dev/null | \
	awk '$$1 == "tmpfs" && $$2 !~ /noexec/ && $$3 > 4e9 { print "/dev/shm"; exit }')
TEMPORARY := $(if $(MEMORY),TMPDIR=$(MEMORY) GOTMPDIR=$(or $(TMPDIR),/tmp))

# Tests allocate much and keep little. With less garbage collection they need a quarter less processor time. The programs of a control plane have
# a setting of their own. Samples of allocations, which nothing reads, cost worlds in virtual time another tenth.
TESTENV := $(TEMPORARY) GODEBUG=memprofilerate=0
GOTEST := $(TESTENV) GOGC=400 go test

# Worlds in virtual time run one goroutine after the other. On one processor each, they need a fifth to a third less processor time: a second
# one only waits for work, and moves goroutines. Go runs as many packages at a time as there are processors. make race uses all of them.
# Worlds leave more garbage than other tests: with twice the room for it, they need 6 % less processor time, and half as much memory again.
TESTKIT := $(TESTENV) GOGC=800 GOMEMLIMIT=2GiB go test -cpu 1 -timeout 30m
# The longest of them come first, so that no processor waits for one at the end.
LONGEST := $(addprefix ./local/testkit/,storm worlds/permissions worlds/upgrade worlds/roll worlds/interruption worlds/sweep)
testkit = echo $(LONGEST); $(call computing,./local/testkit/...) | grep -vxE '.*/drover/($(subst $() ,|,$(LONGEST:./%=%)))'
others = $(call computing,$(1)) | grep -v /drover/local/testkit/

# Tests that wait run with tests that compute. The latter have a lower priority, so that timeouts keep their meaning. -k: a failure of one group
# does not stop the other. lint runs vet, with more checks than `go test`.
.PHONY: test test-waiting test-testkit test-computing lint-and-compute
test: node_modules local ## Run every test
	@$(MAKE) -k -j2 test-waiting lint-and-compute
lint-and-compute:
	@nice $(MAKE) lint test-testkit test-computing
test-testkit:
	@$(TESTKIT) -vet=off $$($(testkit))
test-waiting:
	@$(GOTEST) -vet=off -timeout 30m -p 3 -parallel 4 $(addprefix ./,$(WAITING))
test-computing:
	@$(GOTEST) -vet=off -timeout 30m $$($(call others,./...))

# What runs without a local account: decisions, adapters, and handlers with fakes.
UNIT := ./events/... ./templates/... ./shared/... ./functions/... ./cmd/internal/... ./cmd/drover/... ./cmd/reference/...

.PHONY: test-unit
test-unit: ## Run the tests that need nothing built: less than a minute
	@$(GOTEST) $$($(call computing,$(UNIT)))

.PHONY: test-local
test-local: local ## Run the tests of the local account, and of drover in it
	@$(TESTKIT) $$($(testkit))
	@$(GOTEST) -timeout 30m $$($(call others,./local/...))
	@$(GOTEST) -timeout 30m -p 3 -parallel 4 $(addprefix ./,$(filter local/%,$(WAITING)))

.PHONY: race
race: local ## Run every test with the race detector, which needs a C compiler: half an hour
	@$(GOTEST) -race -vet=off -timeout 60m $$($(call computing,./...))
	@$(GOTEST) -race -vet=off -timeout 60m -parallel 4 $(addprefix ./,$(WAITING))

# How long, such as STORM=1m; SEED begins with a given world. Every tenth world has rollouts: FLEETS=1 lives only such worlds.
STORM := 10m
SEED := 0
FLEETS := 10

.PHONY: traces
traces: ## Compare what drover does in 200 random worlds with the recording (RECORD=1 records it again)
	@mkdir -p build
	@go test -c -o build/storm.test ./local/testkit/storm
	@cd local/testkit/storm && ../../../build/storm.test -test.run '^TestTraces$$' -test.cpu 1 -test.timeout 0 \
		-seeds 200 -traces testdata/traces.txt $(if $(RECORD),-record)

.PHONY: storm
storm: ## Live random lives of clusters under random faults for ten minutes (STORM=1m), in virtual time
	@go test -c -o build/storm.test ./local/testkit/storm
	@build/storm.test -test.run '^TestStorm$$' -test.timeout 0 -storm $(STORM) -from $(SEED) -fleets $(FLEETS)

# One package, such as PKG=./shared/drain. WORKERS is the number of mutants to test at once.
PKG :=
WORKERS :=

.PHONY: mutate
mutate: ## Change operators in decisions and handlers, and fail if their tests noticed less than 90 % of the changes: hours (PKG=./shared/roll: one package)
	@go run ./cmd/mutate $(if $(WORKERS),-workers $(WORKERS)) $(PKG)

# Compiling for arm64 takes two minutes of CPU, and `make deploy` does it. lint checks only that every package has the same files on arm64 and
# amd64.
.PHONY: lint
lint: node_modules ## Check formatting, vet, and validate every golden template with CloudFormation's own rules
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); [ -z "$$unformatted" ] || { echo "not gofmt'd: $$unformatted"; exit 1; }
	@GOGC=400 go vet ./...
	@files() { GOOS=linux GOARCH=$$1 go list -deps -f '{{with .Module}}{{if .Main}}{{$$.ImportPath}} {{$$.GoFiles}}{{end}}{{end}}' ./functions/...; }; \
		arm=$$(files arm64); amd=$$(files amd64); \
		[ "$$arm" = "$$amd" ] || { echo "the functions are of other files on arm64, where they are deployed, than on amd64:"; diff <(echo "$$arm") <(echo "$$amd"); }
	@node templates/validate.mjs shared/render/testdata/golden

.PHONY: golden
golden: functions-$(HOST_ARCH) functions-arm64 ## Rewrite every golden file and generated page; review the diff
	@go run ./cmd/reference
	@go test ./shared/render -update >/dev/null
	@go test ./infra -update >/dev/null
	@git status --short

.PHONY: bench
bench: local functions-arm64 kubernetes-clients ## Measure, beside limits; tables, and JSON lines in build/bench.jsonl
	@go run ./cmd/bench

# ── Build ────────────────────────────────────────────────────────────────────────────────────────────────────────────

.PHONY: synth
synth: functions-arm64 node_modules ## Synthesize the CDK app for AWS into cdk.out
	@echo "synthesizing cdk.out"; go run ./infra

.PHONY: local
local: kubernetes synth-local build/drover build/drover-local

# What `drover version` prints if Go records no commit: it does not in a git worktree, or where GOFLAGS has -buildvcs=false.
COMMIT = $(shell git rev-parse HEAD 2>/dev/null)
CLI := github.com/drover-run/drover/cmd/internal/cli
STAMP = $(if $(COMMIT),-X $(CLI).commit=$(COMMIT) -X $(CLI).commitTime=$(shell git log -1 --format=%cI) \
	-X $(CLI).modified=$(if $(shell git status --porcelain),true,false))

# The page of drover ui, which build/drover embeds. Without npm, the command is built without the page.
UI := cmd/internal/ui
.PHONY: ui
ui: ## Bundle the page that drover ui serves
	@if ! command -v npm >/dev/null; then echo "npm is missing: drover ui is left out"; else $(MAKE) $(UI)/dist/index.html; fi
$(UI)/dist/index.html: $(UI)/web/node_modules/.package-lock.json $(UI)/web/build.mjs $(wildcard $(UI)/web/src/*)
	@echo "bundling the page"; node $(UI)/web/build.mjs
$(UI)/web/node_modules/.package-lock.json: $(UI)/web/package-lock.json
	@echo "installing the libraries of the page"; npm ci --prefix $(UI)/web --no-audit --no-fund --loglevel error
	@touch $@

# drover runs drover-local from its own folder: drover alone does not link the local account. OUT is another file to write.
.PHONY: build/drover build/drover-local
build/drover build/drover-local: ui
build/drover build/drover-local: build/%:
	@echo "building $*"; go build $(if $(COMMIT),-buildvcs=auto) -ldflags '-s -w $(STAMP)' -o $(or $(OUT),$@) ./cmd/$*

# The same app for the architecture of this machine: its functions must run here.
# What specs may give to pods there: the roles and the boundary are yours to create.
LOCAL_SETTINGS := {"workloadRoles":["arn:aws:iam::000000000000:role/workloads/*","arn:aws:iam::000000000000:role/capability-*"],$\
	"workloadPolicies":["AmazonS3ReadOnlyAccess"],"workloadBoundary":"arn:aws:iam::000000000000:policy/workloads",$\
	"identityCenter":"arn:aws:sso:::instance/ssoins-0123456789abcdef"}
.PHONY: synth-local
synth-local: functions-$(HOST_ARCH)
	@manifest=build/cdk.out/manifest.json; \
	if [ ! -e $$manifest ] || [ -n "$$(find infra/*.go shared/names shared/fault go.mod build/functions/$(HOST_ARCH)/*/bootstrap -newer $$manifest)" ]; then \
		echo "synthesizing the CDK app for the local account"; \
		CDK_OUTDIR=build/cdk.out CDK_CONTEXT_JSON='{"architecture":"$(LAMBDA_ARCH)","cellSettings":$(LOCAL_SETTINGS)}' go run ./infra; fi

.PHONY: kubernetes kubernetes-clients
kubernetes:
	@go run ./local/kubernetes/buildall
kubernetes-clients:
	@go run ./local/kubernetes/buildall -clients

# One go build for all functions: packages they share are compiled once. Those that are deployed are the same bytes wherever and at whatever
# commit they are built: a relay keeps its code while its source is the same.
.PHONY: functions-arm64 functions-amd64
functions-arm64: TRIM := -trimpath
functions-arm64 functions-amd64: functions-%:
	@echo "building the functions for $*"
	@mkdir -p build/functions/$*/bin
	@GOOS=linux GOARCH=$* go build $(TRIM) -buildvcs=false -tags lambda.norpc -ldflags '-s -w' -o build/functions/$*/bin/ ./functions/...
	@for name in $(FUNCTIONS); do mkdir -p build/functions/$*/$$name; \
		cmp -s build/functions/$*/bin/$$name build/functions/$*/$$name/bootstrap || cp build/functions/$*/bin/$$name build/functions/$*/$$name/bootstrap; done

.PHONY: node_modules
node_modules: infra/node_modules/.package-lock.json
infra/node_modules/.package-lock.json: infra/package-lock.json
	@echo "installing the Node tools"; npm ci --prefix infra --no-audit --no-fund --loglevel error
	@touch $@

.PHONY: clean
clean: ## Remove everything that was built
	@rm -rf build cdk.out infra/node_modules $(UI)/web/node_modules
	@rm -f $(UI)/dist/*.html $(UI)/dist/*.js $(UI)/dist/*.css
