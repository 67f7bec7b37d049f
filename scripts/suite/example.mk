# A small suite: two numbers of clients, with and without a setting, five repeats of two seconds. Real
# ones have the default durations, 30 s of warm-up and 60 s.

RESULTS = target/suite
CLIENTS = 1 4
THREADS = 1
SCRIPTS = select-only tpcb-like
DURATION = 2
WARMUP = 1
VARIANTS = base small
base =
small = shared_buffers=1MB

include $(shell $(PGMARK) --suite-mk)
