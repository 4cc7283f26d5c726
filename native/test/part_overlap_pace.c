#include "control.h"
#include "cost.h"
#include "driver.h"
#include "os.h"
#include "sampler.h"
#include "sandbox.h"

/* A stand-in for the driver's timing functions: the GPU never completes anything. */
static unsigned asked;
static uintptr_t events;

static CUresult create(CUevent *event, unsigned int flags) {
  (void)flags;
  *event = (CUevent)++events;
  return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream) {
  (void)event, (void)stream;
  return CUDA_SUCCESS;
}

static CUresult query(CUstream stream) {
  (void)stream;
  return CUDA_SUCCESS;
}

static CUresult elapsed(float *ms, CUevent from, CUevent to) {
  (void)ms, (void)from, (void)to;
  asked++;
  return CUDA_ERROR_NOT_READY;
}

static struct vgpu_usage *usage;
static struct cost *cost;

/* A timed launch, as the gate makes it. Returns how often it queried the driver for earlier samples. */
static unsigned launch(uintptr_t stream) {
  unsigned before = asked;
  sampler_note_launch(0, (CUstream)stream);
  sampler_collect_if_due();
  usage->devices[0].charged_ns += 50000;
  struct sample *sample = sampler_begin(&(struct sample_request){
      .device = 0, .context = (CUcontext)1, .stream = (CUstream)stream, .cost = cost, .charged_ns = 50000});
  if (sample != NULL) {
    sampler_launching(sample);
    sampler_end(sample, (CUstream)stream, true);
  }
  return asked - before;
}

int main(void) {
  TEST_BEGIN("launches in an overlap window are not delayed by the collection of earlier samples");
  sandbox_make();
  control.limits = sandbox_limits(gpu_uuid(), 0, 50, 0);
  usage = sandbox_usage();
  control.ledger = (struct ledger){.usage = usage, .slot = 0};
  driver.cuEventCreate = create;
  driver.cuEventRecord = record;
  driver.cuStreamQuery = query;
  driver.cuEventElapsedTime = elapsed;
  cost = cost_make(1);

  launch(1);
  CHECK(!sampler_times_every_launch());
  CHECK(launch(1) > 0); /* the first sample is checked */
  for (int i = 0; !sampler_times_every_launch() && i < 1000; i++)
    launch(1 + (uintptr_t)i % 2);
  REQUIRE(sampler_times_every_launch());

  unsigned free_of_it = 0, count = 0;
  for (; sampler_times_every_launch() && count < 100; count++)
    free_of_it += launch(1 + (uintptr_t)count % 2) == 0;
  CHECK(count > 60);
  CHECK(free_of_it >= count - 2); /* but samples are checked eventually */
  asked = 0;
  for (int i = 0; i < 64; i++)
    launch(1);
  CHECK(asked > 0);

  /* A throttled thread checks samples. */
  asked = 0;
  sampler_collect();
  CHECK(asked > 0);
  return TEST_END;
}
