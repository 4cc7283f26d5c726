# Virtual time for programs of one thread (lockstep.c), and containers that share a simulated GPU in it (rows.c).
$(BUILD)/virtual/lockstep.so: $(BUILD)/virtual/lockstep.o
	$(CC) -shared $^ $(LDFLAGS) -ldl -o $@

$(BUILD)/virtual/rows: $(BUILD)/virtual/rows.o $(BUILD)/virtual/lie.o $(call SIM_OBJECTS,$(SIM_MACHINE))
	$(CC) $^ $(LDFLAGS) -lpthread -o $@

ALL += $(BUILD)/virtual/lockstep.so $(BUILD)/virtual/rows
CFLAGS_virtual := -Isim
SCRIPTS += $(wildcard test/virtual_*.sh)
