# gpu-client is static, so it runs in any image regardless of the C library. musl makes it smallest and is used if it is
# installed, and the target is this machine.

CLIENT_MUSL := $(if $(filter $(shell uname -m)-%,$(shell $(CC) -dumpmachine)),$(shell command -v musl-gcc))
CLIENT_CC := $(if $(DEBUG),$(CC),$(or $(CLIENT_MUSL),$(CC)))
CLIENT_STATIC := $(if $(DEBUG),$(filter -fsanitize%,$(LDFLAGS)),-static -s)
CLIENT_SOURCES := $(wildcard client/*.c)

$(BUILD)/gpu-client: $(CLIENT_SOURCES) $(wildcard client/*.h) client/module.mk
	@mkdir -p $(@D)
	$(CLIENT_CC) $(filter-out -MMD -MP -fPIC,$(CFLAGS)) $(CLIENT_SOURCES) $(CLIENT_STATIC) -o $@

ALL += $(BUILD)/gpu-client
