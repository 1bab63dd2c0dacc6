# make lab       set up, and open JupyterLab on your own copies of the chapters
# make test      set up, and run all tests: about 15 minutes on two cores
# make venv      set up only, in the folder .venv
# make site      the web site, with live widgets in every chapter, in the folder site
# make pack      for teachers: notes, slides, handouts, notebooks and animations of every chapter, in the folder pack
# make withhold  a copy of the course for students, without solutions and answers, in the folder students
# make wheels    all packages as files in the folder wheels; on the same kind of machine, with the same Python and
#                without internet: make lab WHEELS=wheels
# make refresh   run the chapters again and save their normalised outputs
# make gallery   a page with the approved picture of every widget, and what the last test drew differently
# make pictures  approve how every widget looks now; look at the gallery first
# make bench     benchmarks, as ratios against peers or goals measured in the same run
# make lint      the style check that the tests run too

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# a folder of wheels to install from, and from nowhere else
INSTALL = $(BIN)/python etc/install.py $(if $(WHEELS),--wheels $(abspath $(WHEELS)))
# Some machines have this set; each of many hundred processes would then compile the course anew, for up to 0.2 s.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help lab test venv refresh site pack withhold wheels bench gallery pictures lint

help:
	@sed -n 's/^# //p; /^$$/q' Makefile

lab: .venv/course.stamp
	@exec $(BIN)/python -m course.ringside lab $$(test -w . && echo my-course) $(LAB_FLAGS)

# Four parts of the tests at a time, the longest and those that wait first: on two cores, since they wait for half of their
# time. Whoever is done takes the next. What a part says comes when it is done.
CAMPAIGN := tests/launch/test_fault_campaign.py
LONGEST := tests/course/test_exercises.py 'tests/launch/test_[n-z]*.py' 'tests/widgets/test_[r-z]*.py' \
	'tests/launch/test_[a-m]*.py --deselect $(CAMPAIGN)' 'tests/course --ignore tests/course/test_exercises.py' \
	'tests/widgets/test_[a-q]*.py' tests/lab 'course/[!0]*.ipynb' $(CAMPAIGN) 'course/0*.ipynb'
FOLDERS := $(patsubst %/,%,$(sort $(dir $(wildcard tests/*/test_*.py))))
PARTS := $(LONGEST) $(filter-out tests/launch tests/course tests/widgets tests/lab,$(FOLDERS)) 'tests/test_*.py'
test: .venv/test.stamp
	@printf '%s\n' $(PARTS) | xargs -P 4 -I{} sh -c 'echo "{} ..."; log=$$(mktemp); \
	$(BIN)/python -m pytest $(PYTEST) {} > $$log 2>&1; code=$$?; \
	echo "== {}"; cat $$log; rm $$log; exit $$code'

venv: .venv/test.stamp

refresh: .venv/test.stamp
	$(BIN)/python -m course.refresh

site: .venv/test.stamp
	$(BIN)/python -m course.site site $(CHAPTERS)

pack: .venv/pack.stamp
	$(BIN)/python -m course.pack pack $(CHAPTERS)

withhold: .venv/course.stamp
	$(BIN)/python -m course.ringside withhold students

# What builds the course's own wheel is not among what it needs to run.
wheels: .venv/course.stamp
	@echo "downloading all packages into wheels: 400 MB, most of it torch ..."
	@$(BIN)/python -m pip download --quiet --dest wheels --constraint etc/lock.txt '.[jax]' hatchling editables pip uv

bench: .venv/test.stamp
	$(BIN)/python -m tests.benchmarks

gallery: .venv/test.stamp
	$(BIN)/python -m tests.pictures.gallery

pictures: .venv/test.stamp
	$(BIN)/python -m tests.pictures.approve

lint: .venv/test.stamp
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

.venv/course.stamp: pyproject.toml etc/lock.txt etc/install.py etc/ipython/ipython_kernel_config.py etc/labconfig/default_setting_overrides.json
	@echo "setting up in .venv, once: 2 GB, most of it torch"
	@test -x $(BIN)/python || uv venv --quiet --seed --python "$(PYTHON)" .venv 2>/dev/null || $(PYTHON) -m venv .venv
	@$(INSTALL)
# No news and no update check: nothing of the course asks the internet for anything.
	@$(BIN)/jupyter labextension disable --level=sys_prefix "@jupyterlab/apputils-extension:announcements" >/dev/null 2>&1
	@touch $@

.venv/pack.stamp: .venv/course.stamp
	@$(INSTALL) slides
	@touch $@

.venv/test.stamp: .venv/course.stamp
	@$(INSTALL) test
	@touch $@
