# Programs that the benchmarks of ../bench run: linked with the driver alone, they meet the control library where LD_LIBRARY_PATH says so.

BENCH_SOURCES := $(wildcard bench/*.c)
BENCH_PROGRAMS := $(patsubst bench/%.c,$(BUILD)/bench/%,$(BENCH_SOURCES))

$(BUILD)/bench/%: bench/%.c bench/module.mk Makefile $(BUILD)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $< $(LDFLAGS) $(BUILD)/sim/libcuda.so.1 -pthread -ldl -o $@

ALL += $(BENCH_PROGRAMS)
