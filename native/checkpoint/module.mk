# gpu-checkpoint suspends and resumes processes for the agent. It opens the driver's library by path.
CHECKPOINT_LIBDL := $(shell $(CC) -print-file-name=libdl.so.2)

$(BUILD)/gpu-checkpoint: checkpoint/gpu_checkpoint.c include/cuda_abi.h include/cuda_functions.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $< $(LDFLAGS) $(wildcard $(CHECKPOINT_LIBDL)) -o $@

ALL += $(BUILD)/gpu-checkpoint
