# gpu-client is static: it runs in any image, whatever C library that has. Smallest with musl, which is taken where it is installed.

CLIENT_CC := $(if $(DEBUG),$(CC),$(or $(shell command -v musl-gcc),$(CC)))
CLIENT_STATIC := $(if $(DEBUG),$(filter -fsanitize%,$(LDFLAGS)),-static -s)
CLIENT_SOURCES := $(wildcard client/*.c)

$(BUILD)/gpu-client: $(CLIENT_SOURCES) $(wildcard client/*.h) client/module.mk
	@mkdir -p $(@D)
	$(CLIENT_CC) $(filter-out -MMD -MP -fPIC,$(CFLAGS)) $(CLIENT_SOURCES) $(CLIENT_STATIC) -o $@

ALL += $(BUILD)/gpu-client
