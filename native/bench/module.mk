# Programs for the benchmarks in ../bench. They are linked with the driver only and load the control library when
# LD_LIBRARY_PATH contains it.

BENCH_SOURCES := $(wildcard bench/*.c)
BENCH_PROGRAMS := $(patsubst bench/%.c,$(BUILD)/bench/%,$(BENCH_SOURCES))

$(BUILD)/bench/%: bench/%.c bench/module.mk test/gpu_kernels.h Makefile $(BUILD)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itest $< $(LDFLAGS) $(BUILD)/sim/libcuda.so.1 -pthread -ldl -lm -o $@

# Without libraries, for containers whose libraries are under test. Only benchmarks beside other projects build it.
$(BUILD)/bench/peers/register: bench/peers/register.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -static $< -o $@

ALL += $(BENCH_PROGRAMS)
