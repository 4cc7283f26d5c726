#include "../sim/node.h"
#include "tap.h"

static struct sim_node node;
static char why[160];

static void refused(const char *text, const char *reason) {
  if (sim_node_parse(&node, text, why, sizeof why))
    tap_fail(__FILE__, __LINE__, "accepted: %s", text);
  else if (strstr(why, reason) == NULL)
    tap_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", why, reason);
}

int main(void) {
  TEST_BEGIN("a node description is parsed with all defaults, and rejected with line and reason");
  REQUIRE(sim_node_parse(&node, "{\"gpus\": [{}, {\"memoryMiB\": 81920, \"numaNode\": null}]}", why, sizeof why));
  CHECK_EQ(node.count, 2);
  CHECK_TEXT(node.driver_version, "580.95.05");
  CHECK_EQ(node.cuda_version, 13000);
  CHECK_TEXT(node.gpus[1].uuid, "GPU-00000001-0000-0000-0000-000000000001");
  CHECK_EQ(node.gpus[1].pci_bus, 5);
  CHECK_EQ(node.gpus[1].memory_bytes >> 20, 81920);
  CHECK_EQ(node.gpus[1].numa_node, -1);
  CHECK_EQ(node.level[0][1], SIM_PHB);
  CHECK_EQ(node.slice_ns, 2000000);
  CHECK_EQ(node.context_ns, 0);

  /* "links" may precede "gpus", and unknown keys are ignored. */
  REQUIRE(sim_node_parse(
      &node,
      "{\"links\": [[\"X\", \"NV2\", \"PIX\"], [\"NV2\", \"X\", \"PXB\"], [\"PIX\", \"PXB\", \"X\"]],\n"
      "\"other\": {\"deep\": [[], {}, \"x\", -1.5e3, true]}, \"gpus\": [{}, {}, {}],\n"
      "\"simulation\": {\"timeSliceUs\": 1000, \"switchUs\": 0, \"contextMiB\": 300, \"contextMs\": 200}}",
      why, sizeof why));
  CHECK_EQ(node.nvlinks[0][1], 2);
  /* Not farther apart than the path over the third GPU. */
  CHECK_EQ(node.level[0][1], SIM_PXB);
  CHECK_EQ(node.slice_ns, 1000000);
  CHECK_EQ(node.switch_ns, 0);
  CHECK_EQ(node.context_bytes >> 20, 300);
  CHECK_EQ(node.context_ns, 200000000);

  refused("", "line 1: an object is expected");
  refused("GPU0 GPU1", "an object is expected");
  refused("{\"gpus\": [{}]", "closing bracket");
  refused("{\"gpus\": []}", "no GPU");
  refused("{}", "no GPU");
  refused("{\n\"gpus\": [{\"memoryMiB\": 1.5}]}", "line 2: a whole number");
  refused("{\"gpus\": [{\"uuid\": 7}]}", "a text is expected");
  refused("{\"gpus\": [{\"pciBusId\": \"here\"}]}", "PCI bus id");
  refused("{\"gpus\": [{}, {\"minor\": 0}]}", "one minor");
  refused("{\"gpus\": [{}, {}], \"links\": [[\"X\", \"PIX\"], [\"PHB\", \"X\"]]}", "symmetric");
  refused("{\"gpus\": [{}, {}], \"links\": [[\"X\", \"PIX\"]]}", "as many rows");
  refused("{\"gpus\": [{}], \"links\": [[\"X\", \"PIX\"], [\"PIX\", \"X\"]]}", "one row for each GPU");
  refused("{\"gpus\": [{}, {}], \"links\": [[\"X\", \"FAR\"], [\"FAR\", \"X\"]]}", "a link is");
  refused("{\"gpus\": [{}, {}], \"links\": [[\"X\", \"X\"], [\"X\", \"X\"]]}", "diagonal");
  refused("{\"gpus\": [{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]}", "at most 16");
  refused("{\"gpus\": [{}]} x", "follows the end");
  return TEST_END;
}
