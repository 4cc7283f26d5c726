# gpu-probe uses a GPU like any program; tests and the demo run it as the program of a container. It is linked to the
# driver's name only, so it loads whichever libcuda.so.1 its environment provides.

$(BUILD)/gpu-probe: probe/gpu_probe.c include/cuda_abi.h include/cuda_functions.h $(BUILD)/sim/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $< $(BUILD)/sim/libcuda.so.1 -Wl,--allow-shlib-undefined -o $@

ALL += $(BUILD)/gpu-probe
