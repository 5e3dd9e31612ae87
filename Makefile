# Everything here is a thin name for one command; the README says what each does and how long it takes.
.PHONY: demo test test-clients bench soak fuzz setup setup-tests setup-clients

CARGO ?= cargo

demo: setup
	$(CARGO) build --release --workspace --bins
	$${CARGO_TARGET_DIR:-target}/release/flights

# What the tests need is there by now, so that none may be passed over for want of it.
test: setup-tests
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets --quiet -- --deny warnings
	$(CARGO) clippy --release --package thalweg-streams --no-default-features --quiet -- --deny warnings
	$(CARGO) build --release --workspace --bins
	THALWEG_TESTS_MUST_RUN=1 $${CARGO_TARGET_DIR:-target}/release/with_peers $(CARGO) test --release --workspace --no-fail-fast

test-clients: setup-clients
	$(CARGO) build --release --workspace --bins
	tests/clients/run

bench: setup-tests
	$(CARGO) build --release --workspace --bins --examples
	$${CARGO_TARGET_DIR:-target}/release/compare --publish README.md

soak: setup-tests
	$(CARGO) build --release --workspace --bins --examples
	THALWEG_RANDOM_KILLS=$${THALWEG_RANDOM_KILLS:-200} THALWEG_HISTORY_KILLS=$${THALWEG_HISTORY_KILLS:-100} \
		THALWEG_HOSTILE_FRAMES=$${THALWEG_HOSTILE_FRAMES:-1000000} \
		$(CARGO) test --release --workspace --test it -- killed:: history:: hostile_frames_do_no_harm --nocapture

# Installs nothing; says what it lacks.
fuzz:
	@fuzz/run

setup:
	@scripts/setup

setup-tests:
	@scripts/setup tests

setup-clients:
	@scripts/setup clients
