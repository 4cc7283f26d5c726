# The simulated driver: replacements for libcuda.so.1 and libnvidia-ml.so.1, the gpu-sim command, and MPS.
SIM_MODEL := time_model usage
SIM_MACHINE := $(SIM_MODEL) clock descriptor fault group group_files json ledger liveness lock machine machine_folder mig model mps node process process_state wait
SIM_NVML := $(patsubst sim/%.c,%,$(wildcard sim/nvml_*.c))
SIM_MPS := mps_command mps_control mps_file mps_state
SIM_CUDA := $(filter-out gpu_sim $(SIM_MPS) $(SIM_NVML) $(SIM_MACHINE),$(patsubst sim/%.c,%,$(wildcard sim/*.c)))
SIM_OBJECTS = $(patsubst %,$(BUILD)/sim/%.o,$(1))
CFLAGS_sim := -Isim

# $(1): target, whose file name is the SONAME, $(2): objects. -Bsymbolic keeps calls to the library's own functions
# inside, as in the real driver, so that hooks in an interposed library do not see them.
define simulated
$(1): $(call SIM_OBJECTS,$(2))
	@mkdir -p $$(@D)
	$$(CC) -shared -Wl,-Bsymbolic -Wl,-soname,$$(@F) $$^ $$(LDFLAGS) -lpthread -o $$@
	ln -sf $$(@F) $$(basename $$@)
endef
$(eval $(call simulated,$(BUILD)/sim/libcuda.so.1,$(SIM_CUDA) $(SIM_MACHINE)))
$(eval $(call simulated,$(BUILD)/sim/libnvidia-ml.so.1,$(SIM_NVML) $(SIM_MACHINE)))
$(eval $(call simulated,$(BUILD)/mirror-renamed/libcuda-origin.so.1,$(SIM_CUDA) $(SIM_MACHINE)))
$(eval $(call simulated,$(BUILD)/mirror-renamed/libnvidia-ml-origin.so.1,$(SIM_NVML) $(SIM_MACHINE)))
$(eval $(call simulated,$(BUILD)/places/libsimulated.so.1,$(SIM_CUDA) $(SIM_MACHINE)))

$(BUILD)/gpu-sim: $(call SIM_OBJECTS,gpu_sim $(SIM_MACHINE))
	$(CC) $^ $(LDFLAGS) -lpthread -o $@

$(BUILD)/nvidia-cuda-mps-control: $(call SIM_OBJECTS,$(SIM_MPS) $(SIM_MACHINE))
	$(CC) $^ $(LDFLAGS) -lpthread -o $@

SIM_LIBRARIES := $(BUILD)/sim/libcuda.so.1 $(BUILD)/sim/libnvidia-ml.so.1
ALL += $(SIM_LIBRARIES) $(BUILD)/gpu-sim $(BUILD)/nvidia-cuda-mps-control
SIM_LINK = -L$(BUILD)/sim -l:libcuda.so.1 -l:libnvidia-ml.so.1 -Wl,-rpath,$(abspath $(BUILD))/sim -lpthread
$(eval $(call tests,sim,test/sim.h test/sim_nvml.h $(SIM_LIBRARIES) $(BUILD)/gpu-sim $(BUILD)/nvidia-cuda-mps-control,$$(SIM_LINK)))
SCRIPTS += $(wildcard test/sim_*.sh)
# Tests of the time model alone.
$(eval $(call tests,model,test/model_bench.h $(call SIM_OBJECTS,$(SIM_MODEL)),-Isim $(call SIM_OBJECTS,$(SIM_MODEL))))
# Tests of the parser for node descriptions.
$(eval $(call tests,node,$(call SIM_OBJECTS,json mig node),$(call SIM_OBJECTS,json mig node)))
