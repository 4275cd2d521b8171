# `make help` lists the targets. Every target does its own set-up: Node.js 20 or newer, npm and make are enough.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

DIR ?= .mco
WORKERS ?= 3
CONTROL_PLANE_NODES ?= 1
# What serves the API: embedded, or kubernetes (real etcd, kube-apiserver, kube-controller-manager, kube-scheduler).
CONTROL_PLANE ?= embedded
FORMATTER = node_modules/.formatter
NODE = $$(hack/node-path)
BIN = PATH="$$(dirname "$(NODE)"):$$PATH" node_modules/.bin

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

node_modules/.installed: package.json package-lock.json
	@echo "installing the packages of package-lock.json into node_modules/"
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# The formatter has a lock file of its own, and 'npm install' instead of 'npm ci': that one refuses a lock file without the
# packages for other platforms, which a mirror may lack. What is not in the lock file is removed again, before it has run:
# --ignore-scripts is said here because npm reads the settings of the folder that --prefix names.
$(FORMATTER)/.installed: node_modules/.installed hack/formatter/package.json hack/formatter/package-lock.json
	@rm -rf $(FORMATTER)
	@mkdir -p $(FORMATTER)
	@cp hack/formatter/package.json hack/formatter/package-lock.json $(FORMATTER)
	@npm install --prefix $(FORMATTER) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@$(NODE) hack/only-locked.ts $(FORMATTER) hack/formatter/package-lock.json
	@touch $@

.PHONY: setup
setup: node_modules/.installed ## install what the other targets need (packages only, into node_modules/)

.PHONY: up
up: setup ## start a cluster on this machine, roll the examples out, and show it live (Ctrl-C stops it; CONTROL_PLANE=kubernetes: on real Kubernetes; IMAGE_MODE=1: with images built on the cluster)
	@if [ "$(CONTROL_PLANE)" = kubernetes ]; then hack/kubernetes build; fi
	@bin/mco up --api-server $(CONTROL_PLANE) --dir $(DIR) --workers $(WORKERS) --control-plane $(CONTROL_PLANE_NODES) $(if $(IMAGE_MODE),--image-mode,--apply examples)

.PHONY: down
down: setup ## stop the cluster of DIR
	@bin/mco down --dir $(DIR)

.PHONY: test
test: setup ## run every test but the long ones (6 minutes on 2 calm cores)
	@$(BIN)/vitest run $(ARGS)

.PHONY: test-durations
test-durations: setup ## measure how long each test file takes, for the order in which `make test` begins them (hack/test-durations.json)
	@MCO_DURATIONS=1 $(BIN)/vitest run $(ARGS)

.PHONY: test-kubernetes
test-kubernetes: setup ## run contract, differential, session, fault and scenario tests on a real Kubernetes control plane
	@hack/kubernetes build || true
	@$(BIN)/vitest run --config vitest.kubernetes.config.ts $(ARGS)

.PHONY: test-api-suites
test-api-suites: setup ## play openshift/api's own suites of API objects (../shared/api-suites) on the embedded API server and on a real one
	@$(BIN)/vitest run test/api-suites/api-suites.test.ts $(ARGS)
	@hack/kubernetes build || true
	@$(BIN)/vitest run --config vitest.kubernetes.config.ts test/api-suites $(ARGS)

.PHONY: test-ecosystem
test-ecosystem: setup ## the suite beside programs that administrators run: Prometheus (test/ecosystem)
	@hack/monitoring build || true
	@MCO_LONG=1 $(BIN)/vitest run test/ecosystem $(ARGS)

.PHONY: test-long
test-long: setup ## the long tests: scenarios, faults, power cuts, planted bugs, real Ignition, every kind of crash at every effect, every input of the readers (FAULTS=some: a choice of each), 300 seeds of the simulation (SEEDS=n); SCENARIOS=some: without those that test-kubernetes runs too
	@MCO_LONG=only SEEDS=$${SEEDS:-300} FAULTS=$${FAULTS:-all} $(BIN)/vitest run $(ARGS)
	@MCO_LONG=effects FAULTS=$${FAULTS:-all} $(BIN)/vitest run $(ARGS)

.PHONY: check
check: setup formatted types lint generated conforms ## form, types, lint, generated files and docs

.PHONY: formatted
formatted: setup $(FORMATTER)/.installed
	@$(FORMATTER)/node_modules/.bin/oxfmt --check src test hack '*.ts' >/dev/null || { $(FORMATTER)/node_modules/.bin/oxfmt --list-different src test hack '*.ts'; echo "run 'make format'" >&2; exit 1; }
	@echo "form: ok"

.PHONY: types
types: setup
	@node_modules/.bin/tsc -p tsconfig.json
	@node_modules/.bin/tsc -p tsconfig.core.json
	@echo "types: ok"

.PHONY: lint
lint: setup
	@node_modules/.bin/oxlint --type-aware --deny-warnings src test hack
	@echo "lint: ok"

.PHONY: format
format: setup $(FORMATTER)/.installed ## format src, test and hack (120 columns)
	@$(FORMATTER)/node_modules/.bin/oxfmt src test hack '*.ts'

.PHONY: generate
generate: setup ## write the generated files (CRDs, error reference)
	@$(NODE) hack/generate.ts

.PHONY: audit
audit: setup ## ask the registry for known vulnerabilities of the shipped packages (2: the registry answers no such requests)
	@PATH="$$(dirname "$(NODE)"):$$PATH" hack/audit

.PHONY: sbom
sbom: setup ## write sbom.spdx.json: every locked package with its hash (SPDX 2.3; FILE=path)
	@$(NODE) hack/sbom.ts $(or $(FILE),sbom.spdx.json)
	@echo "written: $(or $(FILE),sbom.spdx.json)"

.PHONY: release
release: setup ## write dist/release from the commit: program, bills of materials, provenance, sums (VERSION=, NODE_IMAGE=NAME@sha256:…, IMAGES="NAME=OCI-LAYOUT …", BUILDER=URI, SOURCE=URI, DOWNLOADS=URL; docs/releasing.md)
	@hack/release --version "$(VERSION)" --node-image "$(NODE_IMAGE)" $(foreach image,$(IMAGES),--image $(image)) $(if $(BUILDER),--builder $(BUILDER)) $(if $(SOURCE),--source $(SOURCE)) $(if $(DOWNLOADS),--downloads $(DOWNLOADS))

.PHONY: kubernetes-types
kubernetes-types: setup ## write the types of Kubernetes' kinds from the sources of the release in hack/control-plane/go.mod (needs Go)
	@hack/kubernetes build
	@$(NODE) hack/kubernetes-types.ts

.PHONY: kubelet-gates
kubelet-gates: setup ## write the kubelet's feature gates from the release in hack/go-kubelet/go.mod (needs Go)
	@$(NODE) hack/kubelet-gates.ts

.PHONY: openshift-kinds
openshift-kinds: setup ## write the definitions of OpenShift's kinds that 'mco up' installs (OPENSHIFT_API=FOLDER, a clone of openshift/api)
	@$(NODE) hack/openshift-kinds.ts "$(OPENSHIFT_API)"

.PHONY: generated
generated: setup
	@$(NODE) hack/generate.ts --check
	@$(NODE) hack/kubernetes-types.ts --check
	@$(NODE) hack/kubelet-gates.ts --check
	@echo "generated files: ok"

.PHONY: conforms
conforms: setup
	@$(NODE) hack/conformance.ts --check
	@echo "conformance: ok"

.PHONY: conformance
conformance: setup ## run the tests that docs/conformance.md names, and write it with their results
	@$(NODE) hack/conformance.ts

.PHONY: bench
bench: setup ## measure, print, and write docs/benchmarks.md with its JSON
	@$(NODE) hack/bench.ts $(ARGS)

.PHONY: bench-scale
bench-scale: setup ## the control plane with 5,000 machines, into docs/benchmarks.md (some minutes, 6 GiB)
	@$(NODE) hack/bench.ts --only scale $(ARGS)

.PHONY: soak
soak: setup ## the long simulation (SEEDS=10000) and histories of machines that join (HISTORIES=10000), every crash (PAIRS=20000, STATES=2000 a scenario, KILLS=1000), readers beside independent ones (RUNS=200000), and random operation lists on both API servers (LISTS=10000)
	@MCO_LONG=1 SEEDS=$${SEEDS:-10000} HISTORIES=$${HISTORIES:-10000} $(BIN)/vitest run test/simulation $(ARGS)
	@MCO_LONG=1 FAULTS=all PAIRS=$${PAIRS:-20000} STATES=$${STATES:-2000} KILLS=$${KILLS:-1000} $(BIN)/vitest run test/crash $(ARGS)
	@RUNS=$${RUNS:-200000} $(BIN)/vitest run test/differential/readers $(ARGS)
	@hack/kubernetes build || true
	@LISTS=$${LISTS:-10000} $(BIN)/vitest run --config vitest.kubernetes.config.ts test/differential $(ARGS)
