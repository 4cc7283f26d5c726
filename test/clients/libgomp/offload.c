/* OpenMP offloading of GCC: memory and target regions, in a worker thread as well. The simulated driver computes
 * nothing, so the kernels change nothing. Prints what test/clients/report.ts reads. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (1 << 20)
#define STEP_MIB 50

/* Copies an array to the GPU and back, around a kernel. */
static long there_and_back(void) {
  static int numbers[1024];
  long sum = 0;
  for (int i = 0; i < 1024; i++)
    numbers[i] = i;
#pragma omp target map(tofrom : numbers)
  for (int i = 0; i < 1024; i++)
    numbers[i] += 0;
  for (int i = 0; i < 1024; i++)
    sum += numbers[i];
  return sum;
}

static void fill(const char *where) {
  int limit = atoi(getenv("CLIENT_LIMIT_MIB")), count = 0;
  void *held[1000];
  while (count * STEP_MIB < 2 * limit && count < 1000) {
    held[count] = omp_target_alloc((size_t)STEP_MIB * MIB, 0);
    if (held[count] == NULL) break;
    count++;
  }
  printf("got omp_target_alloc %s: %d %s\n", where, count * STEP_MIB, count * STEP_MIB < 2 * limit ? "refused" : "all");
  while (count > 0)
    omp_target_free(held[--count], 0);
}

static void *work(void *unused) {
  (void)unused;
  printf("is numbers in a worker: %ld\n", there_and_back());
  fill("in a worker");
  return NULL;
}

int main(void) {
  pthread_t worker;
  printf("is devices: %d\n", omp_get_num_devices());
  printf("is numbers: %ld\n", there_and_back());
  fill("in the first thread");
  if (pthread_create(&worker, NULL, work, NULL) != 0) return 1;
  pthread_join(worker, NULL);
  return 0;
}
