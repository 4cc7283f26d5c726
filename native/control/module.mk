# The control library. libcuda-control.so is installed in the place of libcuda.so.1 and loads the driver's library as
# libcuda-origin.so.1. libnvml-control.so does the same for libnvidia-ml. The sandbox builds read their directory from
# the environment. Only tests, benchmarks and the demo use them; the agent never installs them.

comma := ,

CONTROL_SHARED := clock descriptor directory fork ledger limits objects os process share_law usage
# What differs between the installed libraries and those for tests.
CONTROL_INSTALLED := clock_fixed directory_fixed
CONTROL_SANDBOX := clock_sandbox directory_sandbox
CONTROL_NVML := forward_nvml $(patsubst control/%.c,%,$(wildcard control/nvml_*.c))
CONTROL_CUDA := forward_cuda watched_calls $(filter-out $(CONTROL_SHARED) $(CONTROL_NVML) $(CONTROL_INSTALLED) $(CONTROL_SANDBOX),$(patsubst control/%.c,%,$(wildcard control/*.c)))

CFLAGS_control := -ftls-model=initial-exec

# The library is linked against an empty library with the driver's second name. Where the loader's functions are still
# in libdl, libdl is linked as well.
# RPATH instead of RUNPATH: it also applies to libraries that the driver opens at run time (the PTX compiler, NVVM). In
# a program with an empty environment the control library is found in a default directory, but the driver's other
# libraries are only in the mirror.
# NODELETE: a program that closes and reopens the driver must get the control library again. If it were unloaded, the
# driver would stay loaded, and its SONAME is the name that the program opens.
CONTROL_LDFLAGS := -Wl,-z,nodelete $(filter-out %defs,$(LDFLAGS)) -shared -Wl,-Bsymbolic -Wl,--no-undefined -Wl,-rpath,'$$ORIGIN:/usr/local/nvidia/lib64' -Wl,--disable-new-dtags -Wl,--no-as-needed
CONTROL_LIBDL := $(shell $(CC) -print-file-name=libdl.so.2)

$(BUILD)/control/origin/lib%-origin.so.1:
	@mkdir -p $(@D)
	$(CC) -shared -nostdlib -x c /dev/null -Wl,-soname,lib$*-origin.so.1 -o $@

# An unhooked version of a hooked call would bypass the limits, so the build fails if the list contains one.
$(BUILD)/control/versions.checked: include/cuda_calls.def Makefile
	@mkdir -p $(@D)
	@sed -nE 's/^CUDA_([A-Z]+)\(([0-9]+), ([A-Za-z0-9_]+), ([A-Za-z0-9_]+).*/\1 \2 \3 \4/p' $< | awk ' \
	  $$1 == "HOOK" { hooked[$$3] = 1; next } { other[$$3] = other[$$3] " " $$4 " (CUDA " $$2 ")" } \
	  END { for (name in other) if (name in hooked) { print "$<: " name " is hooked, and not in the form" other[name]; failed = 1 } exit failed }' >&2
	@touch $@
ALL += $(BUILD)/control/versions.checked

# $(1): target, $(2): SONAME, $(3): the driver's second name, $(4): objects
define control_library
$(1): $(patsubst %,$(BUILD)/control/%.o,$(4)) $(BUILD)/control/origin/$(3)
	@mkdir -p $$(@D)
	$$(CC) $$(filter %.o,$$^) $$(CONTROL_LDFLAGS) -Wl,-soname,$(2) $(BUILD)/control/origin/$(3) $$(CONTROL_LIBDL) -o $$@
ALL += $(1)
endef

$(eval $(call control_library,$(BUILD)/libcuda-control.so,libcuda.so.1,libcuda-origin.so.1,$(CONTROL_SHARED) $(CONTROL_CUDA) $(CONTROL_INSTALLED)))
$(eval $(call control_library,$(BUILD)/libnvml-control.so,libnvidia-ml.so.1,libnvidia-ml-origin.so.1,$(CONTROL_SHARED) $(CONTROL_NVML) $(CONTROL_INSTALLED)))
$(eval $(call control_library,$(BUILD)/sandbox/libcuda-control.so,libcuda.so.1,libcuda-origin.so.1,$(CONTROL_SHARED) $(CONTROL_CUDA) $(CONTROL_SANDBOX)))
$(eval $(call control_library,$(BUILD)/sandbox/libnvml-control.so,libnvidia-ml.so.1,libnvidia-ml-origin.so.1,$(CONTROL_SHARED) $(CONTROL_NVML) $(CONTROL_SANDBOX)))

# Unit tests link the objects that they need.
$(BUILD)/control/parts.a: $(patsubst %,$(BUILD)/control/%.o,$(CONTROL_SHARED) $(CONTROL_CUDA) $(CONTROL_SANDBOX))
	@rm -f $@
	$(AR) rcs $@ $^

$(eval $(call tests,part,$(BUILD)/control/parts.a,-Icontrol $(BUILD)/control/parts.a))
SCRIPTS += test/control_answers.sh test/control_circles.sh test/control_link.sh test/control_linkage.sh test/attack_chroot_installed.sh

# The library mirror of a container: the simulated driver behind the sandbox builds. A second mirror has a future
# driver.
MIRROR := $(BUILD)/mirror
define linked_as
$(1): $(2)
	@mkdir -p $$(@D)
	ln -f $$< $$@
endef
$(eval $(call linked_as,$(MIRROR)/libcuda.so.1,$(BUILD)/sandbox/libcuda-control.so))
$(eval $(call linked_as,$(MIRROR)/libnvidia-ml.so.1,$(BUILD)/sandbox/libnvml-control.so))
$(eval $(call linked_as,$(MIRROR)/libcuda-origin.so.1,$(BUILD)/sim/libcuda.so.1))
$(eval $(call linked_as,$(MIRROR)/libnvidia-ml-origin.so.1,$(BUILD)/sim/libnvidia-ml.so.1))
$(eval $(call linked_as,$(BUILD)/future/libcuda.so.1,$(BUILD)/sandbox/libcuda-control.so))
$(BUILD)/future/libcuda-origin.so.1: test/future_driver.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared $< -Wl,-soname,libcuda.so.1 -ldl -o $@
# The future driver has no NVML.
$(eval $(call linked_as,$(BUILD)/future/libnvidia-ml.so.1,$(BUILD)/sandbox/libnvml-control.so))
$(BUILD)/future/libnvidia-ml-origin.so.1:
	@mkdir -p $(@D)
	$(CC) -shared -nostdlib -x c /dev/null -Wl,-soname,libnvidia-ml.so.1 -o $@

FUTURE := $(addprefix $(BUILD)/future/,libcuda.so.1 libcuda-origin.so.1 libnvidia-ml.so.1 libnvidia-ml-origin.so.1 libfuture-companion.so.1)
$(BUILD)/future/libfuture-companion.so.1:
	@mkdir -p $(@D)
	$(CC) -shared -nostdlib -x c /dev/null -o $@

# A mirror of a driver whose SONAME equals the name of its link; sim/module.mk links it.
RENAMED := $(BUILD)/mirror-renamed
$(eval $(call linked_as,$(RENAMED)/libcuda.so.1,$(BUILD)/sandbox/libcuda-control.so))
$(eval $(call linked_as,$(RENAMED)/libnvidia-ml.so.1,$(BUILD)/sandbox/libnvml-control.so))
RENAMED := $(addprefix $(RENAMED)/,libcuda.so.1 libcuda-origin.so.1 libnvidia-ml.so.1 libnvidia-ml-origin.so.1)

# The driver of test/places_driver.c in front of the simulated one.
$(eval $(call linked_as,$(BUILD)/places/libcuda.so.1,$(BUILD)/sandbox/libcuda-control.so))
$(BUILD)/places/libcuda-origin.so.1: test/places_driver.c $(BUILD)/places/libsimulated.so.1
	$(CC) $(CFLAGS) -shared -Wl,--no-as-needed $(filter %.c %.so.1,$^) -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 -Wl,-rpath,'$$ORIGIN' -Wl,--disable-new-dtags -ldl -o $@
PLACES := $(addprefix $(BUILD)/places/,libcuda.so.1 libcuda-origin.so.1)

# Programs are linked with the driver, whose SONAME is libcuda.so.1, and load the control library under that name.
MIRRORED := $(addprefix $(MIRROR)/,libcuda.so.1 libcuda-origin.so.1 libnvidia-ml.so.1 libnvidia-ml-origin.so.1)
ALL += $(MIRRORED)
MIRROR_LIBRARIES := $(MIRROR)/libcuda-origin.so.1 $(MIRROR)/libnvidia-ml-origin.so.1
$(eval $(call tests,control,$(MIRRORED),$(MIRROR_LIBRARIES) -Wl$(comma)-rpath$(comma)'$$$$ORIGIN/../mirror' -pthread -ldl))
$(eval $(call tests,attack,$(MIRRORED),$(MIRROR_LIBRARIES) -Wl$(comma)-rpath$(comma)'$$$$ORIGIN/../mirror' -pthread -ldl))
# The library that test/attack_clock.c preloads.
$(BUILD)/test/fast_clock.so: test/fast_clock.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -shared $< $(LDFLAGS) -ldl -o $@
ALL += $(BUILD)/test/fast_clock.so
$(eval $(call tests,loader,$(MIRRORED) $(RENAMED) $(PLACES) $(FUTURE),-ldl -pthread))
