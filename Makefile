# Everything here is a thin name for one command; the README says what each does and how long it takes.
.PHONY: demo test setup setup-tests

CARGO ?= cargo

demo: setup
	$(CARGO) build --release --workspace --bins
	$${CARGO_TARGET_DIR:-target}/release/flights

test: setup-tests
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets --quiet -- --deny warnings
	$(CARGO) build --release --workspace --bins
	$(CARGO) test --release --workspace --no-fail-fast

setup:
	@scripts/setup

setup-tests:
	@scripts/setup tests
