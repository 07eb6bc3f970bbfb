# Two commands do everything on a fresh machine with Python 3.11 and make: `make demo` and `make test`.
PYTHON ?= python3
UV := .uv/bin/uv
RUN := .venv/bin/python
export UV_PYTHON_DOWNLOADS := never

.PHONY: demo docs test format format-check lint imports types unit bench interop faults soak clean

.venv/.ready: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen --all-extras --python $(PYTHON)
	@touch $@

$(UV):
	$(PYTHON) -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check 'uv==0.13.9'

demo: .venv/.ready  ## two agents, a gateway before each, every call through all six faces; ONCE=1 exits after the table
	$(RUN) examples/demo_run.py $(if $(ONCE),--once)

test: format-check lint imports types unit  ## everything that CI runs

format: .venv/.ready
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

format-check: .venv/.ready
	.venv/bin/ruff format --check .

lint: .venv/.ready
	.venv/bin/ruff check .

imports: .venv/.ready
	.venv/bin/lint-imports

types: .venv/.ready
	.venv/bin/mypy

unit: .venv/.ready
	$(RUN) -m pytest -n auto

docs: .venv/.ready  ## the pages that are made from tables
	$(RUN) -c "from dragoman.dialects.losses import as_markdown; print(as_markdown(), end='')" > docs/losses.md
	$(RUN) -m dragoman.gateway.telemetry.catalog docs/operations.md

bench: .venv/.ready  ## side by side with a2a-sdk, ratios; then the push relay, killed in the middle
	$(RUN) -m bench $(ARGS)
	$(RUN) -m bench.relay

interop: .venv/.ready  ## against the official SDKs, each in an environment of its own; writes docs/interop.md
	$(RUN) -m tests.interop $(ARGS)

faults: .venv/.ready  ## every failure of an upstream beside healthy load; writes docs/endurance.md
	$(RUN) -m tests.endurance faults --write $(ARGS)

soak: .venv/.ready  ## 20 minutes of mixed load with reloads and restarts; writes docs/endurance.md
	$(RUN) -m tests.endurance soak --write $(ARGS)

clean:
	rm -rf .venv .uv .interop .endurance .mypy_cache .ruff_cache .pytest_cache .hypothesis
