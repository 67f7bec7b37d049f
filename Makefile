# Targets and variables follow the GNU Coding Standards; "make help" lists them.

PREFIX = /usr/local
prefix = $(PREFIX)
exec_prefix = $(prefix)
bindir = $(exec_prefix)/bin
datarootdir = $(prefix)/share
docdir = $(datarootdir)/doc/pgmark
pkgdatadir = $(datarootdir)/pgmark
DESTDIR =
INSTALL = install
INSTALL_PROGRAM = $(INSTALL)
INSTALL_DATA = $(INSTALL) -m 644
CARGO = cargo
CARGOFLAGS = --locked
# For each property of "make fuzz".
FUZZ_CASES = 100000

program = target/release/pgmark
sources = Cargo.toml Cargo.lock $(shell find src -type f)
documents = README.md LICENSE-MIT LICENSE-APACHE

# The program is looked for below this directory, whatever the caller's settings.
export CARGO_TARGET_DIR = $(CURDIR)/target

# What setup installs is needed by what follows it; cargo itself uses all processors.
.NOTPARALLEL:
.PHONY: all help setup demo check test lint tls-matrix torture fuzz bench suite install install-as-pgbench place-for-link uninstall clean distclean

all: ## Build the program (the default).
	$(CARGO) build --release $(CARGOFLAGS)

help: ## Show this list.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 20

setup: ## Install what is missing on this machine: a C compiler, PostgreSQL, openssl.
	@scripts/setup

demo: setup all ## Run TPC-B against a throwaway PostgreSQL and show the summary and the files.
	@scripts/demo $(program)

suite: setup all ## Run a small suite of benchmarks on a server of its own, and show where its report lies.
	$(MAKE) --no-print-directory -f scripts/suite/example.mk PGMARK=$(CURDIR)/$(program) plan suite report

check: test ## The same as test.

test: lint ## Everything that CI runs: formatting, lints, documentation, all tests.
	PROPTEST_RNG_SEED=1 $(CARGO) test $(CARGOFLAGS)

lint: ## Formatting, lints and documentation only.
	@scripts/setup lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --all-targets $(CARGOFLAGS) -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps $(CARGOFLAGS)

tls-matrix: ## Every sslmode with every kind of certificate and key, each compared with psql.
	$(CARGO) test $(CARGOFLAGS) --test tls -- --include-ignored

torture: ## Connections that break in every place of a reply, servers that fail in every way.
	$(CARGO) test $(CARGOFLAGS) --test torture --test server_faults -- --include-ignored

fuzz: ## FUZZ_CASES (100000) hostile inputs for each property of what reads foreign bytes.
	PROPTEST_CASES=$(FUZZ_CASES) $(CARGO) test --release $(CARGOFLAGS) --lib harm

bench: ## Measure what a transaction costs, beside pgbench and the least possible.
	$(CARGO) bench $(CARGOFLAGS) --bench evaluation
	$(CARGO) bench $(CARGOFLAGS) --bench load

# Builds only what is not up to date: after "make", root needs no cargo to install.
$(program): $(sources)
	$(CARGO) build --release $(CARGOFLAGS)

install: $(program) ## Install below PREFIX (/usr/local), or below DESTDIR for packagers.
	$(INSTALL) -d $(DESTDIR)$(bindir) $(DESTDIR)$(docdir) $(DESTDIR)$(pkgdatadir)
	$(INSTALL_PROGRAM) $(program) $(DESTDIR)$(bindir)/pgmark
	$(INSTALL_DATA) $(documents) $(DESTDIR)$(docdir)
	$(INSTALL_DATA) scripts/suite/suite.mk $(DESTDIR)$(pkgdatadir)
	$(INSTALL_PROGRAM) scripts/suite/suite-tool $(DESTDIR)$(pkgdatadir)

# A link next to the installed program. What else is called pgbench there stays as it is.
install-as-pgbench: place-for-link install ## Install, and lay a link named pgbench next to it.
	@ln -sf pgmark $(DESTDIR)$(bindir)/pgbench

place-for-link:
	@link=$(DESTDIR)$(bindir)/pgbench; \
	if test "$$(readlink "$$link")" = pgmark; then exit 0; fi; \
	if test -e "$$link" || test -L "$$link"; then \
		echo "$$link is not ours, so it stays as it is; set bindir to another place" >&2; \
		exit 1; \
	fi

uninstall: ## Remove what install has put there.
	@link=$(DESTDIR)$(bindir)/pgbench; if test "$$(readlink "$$link")" = pgmark; then rm -f "$$link"; fi
	rm -f $(DESTDIR)$(bindir)/pgmark
	rm -f $(DESTDIR)$(pkgdatadir)/suite.mk $(DESTDIR)$(pkgdatadir)/suite-tool
	-rmdir $(DESTDIR)$(pkgdatadir)
	for document in $(documents); do rm -f $(DESTDIR)$(docdir)/$$document; done
	-rmdir $(DESTDIR)$(docdir)

clean: ## Remove everything that was built.
	$(CARGO) clean

distclean: clean ## The same as clean: nothing is configured.
