# libcall-list.so calls several functions of the driver's library on one thread. Only the agent loads it.

$(BUILD)/libcall-list.so: $(BUILD)/calls/call_list.o
	$(CC) $< -shared $(LDFLAGS) -o $@

ALL += $(BUILD)/libcall-list.so
