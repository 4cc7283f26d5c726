#include "sim_mps.h"

static struct sim_pipe results;

static int measure_in(void *space) {
  mps_enter(space);
  sim_say(&results, (uint64_t)mps_measure());
  return TAP_PASS;
}

static long measured_in(const char *space) {
  pid_t child = sim_process(measure_in, (void *)space);
  long us = (long)sim_hear(&results);
  CHECK_EQ(sim_wait(child), TAP_PASS);
  return us;
}

static int list_while_in(void *space) {
  char clients[1024], expected[128];
  unsigned int count = 0;
  mps_enter(space);
  sim_begin();
  NVML_OK(nvmlInit_v2());
  nvmlDeviceGetMPSComputeRunningProcesses_v3(sim_device(0), &count, NULL);
  CHECK_EQ(count, strcmp(space, "nowhere") != 0);
  NVML_OK(nvmlShutdown());
  CHECK_EQ(mps_command("client list --all --format=csv,noheader", clients, sizeof clients), 0);
  snprintf(expected, sizeof expected, "%d,one,0,small,", (int)getpid());
  int found = strncmp(clients, expected, strlen(expected)) == 0;
  sim_say(&results, found ? 1 : clients[0] == 0 ? 2 : 3);
  return TEST_END;
}

static uint64_t listed_in(const char *space) {
  pid_t child = sim_process(list_while_in, (void *)space);
  uint64_t found = sim_hear(&results);
  CHECK_EQ(sim_wait(child), TAP_PASS);
  return found;
}

int main(void) {
  TEST_BEGIN(
      "a program in the folder of a namespace has its SMs, and one that is not there has the whole GPU silently");
  char text[2048];
  results = sim_pipe_open();
  setenv("GPU_SIM_CLOCK", "jump", 1);
  sim_describe(
      "{\"driverVersion\": \"615.10.01\", \"gpus\": [{}], \"simulation\": {\"switchUs\": 10, \"idleSwitchUs\": "
      "10, \"eventNs\": 0}}");
  mps_start(NULL);
  mps_spaces("small", 30, "half", 50);
  /* 30 % of 80 SMs are 24. */
  CHECK_BETWEEN(measured_in("one/small"), 3332, 3335);
  CHECK_BETWEEN(measured_in("one/half"), 1999, 2002);
  CHECK_BETWEEN(measured_in("one"), 999, 1002);
  CHECK_BETWEEN(measured_in("nowhere"), 999, 1002);
  CHECK_EQ(listed_in("one/small"), 1);
  CHECK_EQ(listed_in("nowhere"), 2);
  /* A change holds for new clients. */
  CHECK_EQ(mps_command("namespace set small --server=one --active-thread-percentage=100", NULL, 0), 0);
  CHECK_BETWEEN(measured_in("one/small"), 999, 1002);
  CHECK_EQ(mps_command("namespace get small one active-thread-percentage", text, sizeof text), 0);
  CHECK_TEXT(text, "100\n");
  /* A server whose GPU does not exist disappears, and its programs get the whole GPU. */
  CHECK_EQ(mps_command("server create two --allowed-devices=GPU-1234", NULL, 0), 0);
  CHECK_EQ(mps_command("server list two --format=csv,noheader", text, sizeof text), 0);
  CHECK_TEXT(text, "");
  CHECK_BETWEEN(measured_in("two"), 999, 1002);
  /* The daemon refuses these. */
  CHECK_EQ(mps_command("namespace create Small --server=one", NULL, 0), 1);
  CHECK_EQ(mps_command("namespace create small --server=one", NULL, 0), 1);
  CHECK_EQ(mps_command("namespace set small --server=one --active-thread-percentage=0", NULL, 0), 1);
  CHECK_EQ(mps_command("namespace set small --server=one", NULL, 0), 1);
  CHECK_EQ(mps_command("client terminate 1", NULL, 0), 1);
  CHECK_EQ(mps_command("nonsense list", NULL, 0), 1);
  CHECK_EQ(mps_command("namespace delete small --server=one", NULL, 0), 0);
  CHECK_EQ(mps_command("server delete one", NULL, 0), 0);
  CHECK_EQ(mps_stop(), 0);
  CHECK_EQ(mps_command("server list", NULL, 0), 1);
  return TEST_END;
}
