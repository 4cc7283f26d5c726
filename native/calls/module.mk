# libcall-list.so makes several C calls one after another. Only the agent loads it.

$(BUILD)/libcall-list.so: $(BUILD)/calls/call_list.o
	$(CC) $< -shared $(LDFLAGS) -o $@

ALL += $(BUILD)/libcall-list.so
