# A matrix of pgmark runs as make targets: one for each combination of the variables below and each
# repeat, whose file is the result of the run. What is there and was made with the same arguments is
# not made again, so a suite that was stopped, even by kill -9, goes on where it was.
#
# A Makefile of yours sets variables and says
#     include $(shell pgmark --suite-mk)
# Then "make suite" runs what is missing, "make plan" says how much that is, "make report" shows
# what there is, "make stop-server" ends the suite's own server, and "make -n suite" shows the runs.

PGMARK ?= pgmark
# Where everything goes. The results are in RESULTS/runs.
RESULTS ?= results

# The matrix.
SCALES ?= 1
CLIENTS ?= 1
THREADS ?= 1
# simple, extended, prepared
MODES ?= simple
# Transactions a second, or with a unit (600/min), or max.
RATES ?= max
# Builtin scripts, or files of yours.
SCRIPTS ?= tpcb-like
# Names; for each, a variable of that name may hold settings of the server (shared_buffers=1GB) and a
# directory of its programs (bindir=/usr/lib/postgresql/17/bin). The first is what the others are
# compared with.
VARIANTS ?= base
REPEATS ?= 5
# Seconds, or with a unit (5m).
WARMUP ?= 30
DURATION ?= 60
# What is done before each run, as with --before.
BEFORE ?= checkpoint
# Conditions as with --fail-if, without blanks: p99=10ms tps=1000. A run that meets one is kept, and
# the suite fails in the end.
FAIL_IF ?=
# Further options for each run.
OPTIONS ?=
# The seed of a repeat is this and its number: variants get the same, so that they can be compared in
# pairs.
SEED ?= 42
# own: a server that the suite makes for itself; given: the one that PGHOST, PGPORT and so on say, whose
# settings stay as they are.
SERVER ?= own
# A file of SQL for your scripts, run once in the template of each scale; the tables of the builtin
# scripts are there already.
SETUP ?=

# What stands for itself must not be a slip of the pen.
suite_is_set = $(filter file command override,$(firstword $(origin $1)))
suite_unknown := $(strip $(foreach variant,$(filter-out base,$(VARIANTS)),$(if $(call suite_is_set,$(variant)),,$(variant))))
ifneq ($(suite_unknown),)
$(error VARIANTS names $(suite_unknown), but no variable of that name says what it is; set it, to nothing if it has no settings)
endif
ifneq ($(findstring @,$(SCRIPTS))$(findstring +,$(SCRIPTS)),)
$(error SCRIPTS has a name with @ or +, which are in the names of results: rename the file)
endif

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: suite plan report stop-server suite-changed

suite_dir := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
suite_repeats := $(shell seq $(REPEATS))
suite_empty :=
suite_blank := $(suite_empty) $(suite_empty)
suite_reversed = $(if $1,$(call suite_reversed,$(wordlist 2,$(words $1),$1)) $(firstword $1))
suite_is_file = $(wildcard $1)

# A run is named by its coordinates: variant@scale@script@mode@rate@threads@clients@repeat. Of a
# script that is a file, and of a rate with a unit, / is written as + there.
suite_points := $(foreach scale,$(SCALES),$(foreach script,$(subst /,+,$(SCRIPTS)),$(foreach mode,$(MODES),$(foreach rate,$(subst /,+,$(RATES)),$(foreach threads,$(THREADS),$(foreach clients,$(CLIENTS),$(scale)@$(script)@$(mode)@$(rate)@$(threads)@$(clients)))))))
# A B, then B A: what drifts over time does the same to both.
suite_turn = $(if $(filter %1 %3 %5 %7 %9,$1),$(VARIANTS),$(call suite_reversed,$(VARIANTS)))
suite_runs := $(foreach repeat,$(suite_repeats),$(foreach point,$(suite_points),$(foreach variant,$(call suite_turn,$(repeat)),$(variant)@$(point)@$(repeat))))
suite_results := $(suite_runs:%=$(RESULTS)/runs/%.json)

# The n-th coordinate of a run, and what belongs to it.
suite_at = $(word $1,$(subst @, ,$2))
suite_script = $(subst +,/,$(call suite_at,3,$1))
suite_rate = $(filter-out max,$(subst +,/,$(call suite_at,5,$1)))
suite_settings = $(if $(call suite_is_set,$(call suite_at,1,$1)),$($(call suite_at,1,$1)))

# What the command line of a run says of it. Where the server is comes from the environment.
suite_options = $(strip -n \
	$(if $(call suite_is_file,$(suite_script)),-f $(suite_script) -s $(call suite_at,2,$1),-b $(suite_script)) \
	-c $(call suite_at,7,$1) -j $(call suite_at,6,$1) -M $(call suite_at,4,$1) \
	$(suite_rate:%=-R %) \
	-T $(DURATION) --warmup $(WARMUP) --random-seed $(SEED)$(call suite_at,8,$1) \
	$(if $(BEFORE),--before $(subst $(suite_blank),$(suite_comma),$(strip $(BEFORE)))) \
	$(FAIL_IF:%=--fail-if '%') $(OPTIONS) --label $(call suite_at,1,$1) --tag repeat=$(call suite_at,8,$1))
suite_line = $(PGMARK) $(suite_options) --json $(RESULTS)/runs/$1.json
suite_comma := ,

# What a result depends on besides files: the options and the settings of its server. They are written
# beside the result when the run begins. Where program and results lie does not matter.
suite_arguments = $(suite_options) [$(suite_settings)]
suite_differs = $(subst x$1x,,x$2x)$(subst x$2x,,x$1x)
suite_if_changed = $(if $(call suite_differs,$(file <$(RESULTS)/runs/$1.args),$(suite_arguments)),suite-changed)

# Their names are too many for a command line. Writes them, unless make only shows what it would do.
suite_list = $(if $(findstring n,$(firstword -$(MAKEFLAGS))),,$(shell mkdir -p '$(RESULTS)')$(file >$(RESULTS)/list,$(suite_results)))

suite: $(suite_results)
	@$(suite_list)$(suite_dir)/suite-tool end '$(RESULTS)'

# Each line is run by suite-tool in place of a shell: it sees to the server, the database and the lock,
# and then does what the line says.
define suite_rule
$(RESULTS)/runs/$1.json: SHELL = $(suite_dir)/suite-tool
$(RESULTS)/runs/$1.json: .SHELLFLAGS = run
$(RESULTS)/runs/$1.json: export SUITE_RUN = $1
$(RESULTS)/runs/$1.json: export SUITE_SETTINGS = $(call suite_settings,$1)
$(RESULTS)/runs/$1.json: export SUITE_ARGUMENTS = $(call suite_arguments,$1)
$(RESULTS)/runs/$1.json: $(call suite_is_file,$(call suite_script,$1)) $(SETUP) $(call suite_if_changed,$1)
	$(call suite_line,$1)
endef
export SUITE_RESULTS = $(RESULTS)
export SUITE_SERVER = $(SERVER)
export SUITE_CLIENTS = $(CLIENTS)
export SUITE_SETUP = $(SETUP)
export SUITE_PGMARK = $(PGMARK)
$(foreach run,$(suite_runs),$(eval $(call suite_rule,$(run))))

plan:
	@$(MAKE) -n --no-print-directory -f '$(firstword $(MAKEFILE_LIST))' suite | \
		$(suite_dir)/suite-tool plan $(words $(suite_runs)) '$(DURATION)' '$(WARMUP)'

report:
	@$(suite_list)$(suite_dir)/suite-tool report '$(RESULTS)'

stop-server:
	@$(suite_dir)/suite-tool stop '$(RESULTS)'
