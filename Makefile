# make lab      everything set up, JupyterLab opens on the course
# make test     everything set up, every test run
# make venv     only set up
# make refresh  execute the chapters again and save their normalised outputs
# make bench    figures against the peers, as ratios in one run
# make gallery  a page with the approved picture of every widget, and what the last test drew differently
# make pictures approve how every widget looks now; look at the gallery first
# make lint     the style check that the tests run too

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

# JupyterLab refuses root and waits for a browser unless told otherwise.
LAB_FLAGS :=
ifeq ($(shell id -u),0)
LAB_FLAGS += --allow-root
endif
ifeq ($(shell uname),Linux)
ifeq ($(DISPLAY)$(WAYLAND_DISPLAY),)
LAB_FLAGS += --no-browser
endif
endif

.PHONY: lab test venv refresh bench gallery pictures lint

lab: .venv/course.stamp
	cd course && ../$(BIN)/jupyter lab $(LAB_FLAGS) 00_start_here.ipynb

test: .venv/test.stamp
	$(BIN)/python -m pytest

venv: .venv/test.stamp

refresh: .venv/test.stamp
	$(BIN)/python -m course.refresh

bench: .venv/test.stamp
	$(BIN)/python -m tests.benchmarks

gallery: .venv/test.stamp
	$(BIN)/python -m tests.pictures.gallery

pictures: .venv/test.stamp
	$(BIN)/python -m tests.pictures.approve

lint: .venv/test.stamp
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

.venv/course.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
# No news and no update check: nothing of the course asks the internet for anything.
	$(BIN)/jupyter labextension disable --level=sys_prefix "@jupyterlab/apputils-extension:announcements"
	touch $@

.venv/test.stamp: .venv/course.stamp
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@
