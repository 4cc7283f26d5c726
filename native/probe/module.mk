# gpu-probe uses a GPU as any program does; tests and the demo run it as the program of a container. It is linked to the driver's
# name alone, so that it takes whichever libcuda.so.1 its surroundings give it.

$(BUILD)/gpu-probe: probe/gpu_probe.c include/cuda_abi.h include/cuda_functions.h $(BUILD)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $< $(BUILD)/sim/libcuda.so.1 -Wl,--allow-shlib-undefined -o $@

ALL += $(BUILD)/gpu-probe
