/*
 * A management library with the rare behaviour of some drivers, for the tests of the binding. ODD_NVML names a file
 * whose lines control it, and which a test rewrites while it runs:
 *
 *   cards N          the number of GPUs (2)
 *   init CODE        nvmlInit returns CODE
 *   lost I           every call about GPU I returns GPU_IS_LOST
 *   hang I           calls for the memory of GPU I do not return while the line is present
 *   code CODE        every call about a GPU returns CODE
 *   mig I            GPU I is divided into MIG instances
 *   processes N      every GPU has N processes
 *   events I XID     GPU I reports XID once for every change of this line
 *   errors I N       GPU I has counted N uncorrected memory errors
 *
 * Built with -DOLD it has the first version of each function only, and no topology, links, events, MIG.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  int index;
} card_t;

static card_t cards[16];
static int initialised;

/* The number in the line that begins with `key`, and the second one where `second` is given. */
static int order(const char *key, int which, int otherwise, int *second) {
  const char *path = getenv("ODD_NVML");
  FILE *file = path == NULL ? NULL : fopen(path, "r");
  char line[128];
  int result = otherwise;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    char word[32];
    int first = 0;
    int next = 0;
    int found = sscanf(line, "%31s %d %d", word, &first, &next);
    if (found < 2 || strcmp(word, key) != 0) continue;
    if (which >= 0 && first != which) continue;
    result = first;
    if (second != NULL) *second = next;
  }
  if (file != NULL) fclose(file);
  return result;
}

static int has(const char *key, const card_t *card) { return order(key, card->index, -1, NULL) >= 0; }

static int answer(const card_t *card) {
  if (!initialised) return 1;
  if (has("lost", card)) return 15;
  return order("code", -1, 0, NULL);
}

static int put_text(char *out, unsigned int size, const char *text) {
  return snprintf(out, size, "%s", text) < (int)size ? 0 : 7;
}

static int init(void) {
  int code = order("init", -1, 0, NULL);
  if (code == 0) initialised++;
  return code;
}

int nvmlShutdown(void) {
  if (!initialised) return 1;
  initialised--;
  return 0;
}

static int count(unsigned int *out) {
  if (!initialised) return 1;
  *out = (unsigned int)order("cards", -1, 2, NULL);
  return 0;
}

static int handle(unsigned int index, card_t **out) {
  if (index >= 16) return 2;
  cards[index].index = (int)index;
  *out = &cards[index];
  return answer(*out);
}

int nvmlDeviceGetUUID(card_t *card, char *out, unsigned int size) {
  char text[64];
  snprintf(text, sizeof text, "GPU-%08x-0000-0000-0000-000000000000", (unsigned)card->index);
  int code = answer(card);
  return code != 0 ? code : put_text(out, size, text);
}

int nvmlDeviceGetMemoryInfo(card_t *card, unsigned long long *out) {
  while (has("hang", card)) usleep(20000);
  int code = answer(card);
  if (code != 0) return code;
  out[0] = 16ULL << 30;
  out[1] = 15ULL << 30;
  out[2] = 1ULL << 30;
  return 0;
}

static void bus_id(const card_t *card, int digits, char *out) { sprintf(out, "%0*X:%02x:00.0", digits, 0, 0x3a + card->index); }

#ifdef OLD

int nvmlInit(void) { return init(); }
int nvmlDeviceGetCount(unsigned int *out) { return count(out); }
int nvmlDeviceGetHandleByIndex(unsigned int index, card_t **out) { return handle(index, out); }

/* The second version of the structure: legacy id, then nine numbers, of which the last four are arbitrary. */
int nvmlDeviceGetPciInfo_v2(card_t *card, char *out) {
  memset(out, 0xab, 52);
  bus_id(card, 4, out);
  return answer(card);
}

int nvmlDeviceGetComputeRunningProcesses(card_t *card, unsigned int *number, struct { unsigned int pid; unsigned long long used; } *out) {
  if (*number < 2) return 7;
  *number = 2;
  out[0].pid = 100;
  out[0].used = 1 << 20;
  out[1].pid = 101;
  out[1].used = ~0ULL;
  return answer(card);
}

#else

int nvmlInit_v2(void) { return init(); }
int nvmlSystemGetDriverVersion(char *out, unsigned int size) { return put_text(out, size, "999.1"); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) {
  *out = 12080;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned int *out) { return count(out); }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, card_t **out) { return handle(index, out); }
int nvmlDeviceGetName(card_t *card, char *out, unsigned int size) {
  int code = answer(card);
  return code != 0 ? code : put_text(out, size, "Odd GPU");
}
int nvmlDeviceGetMinorNumber(card_t *card, unsigned int *out) {
  *out = 7 - (unsigned int)card->index;
  return answer(card);
}
int nvmlDeviceGetPciInfo_v3(card_t *card, char *out) {
  bus_id(card, 4, out);
  bus_id(card, 8, out + 36);
  return answer(card);
}
int nvmlDeviceGetMigMode(card_t *card, unsigned int *now, unsigned int *later) {
  *now = *later = (unsigned int)has("mig", card);
  return answer(card);
}
int nvmlDeviceGetEccMode(card_t *card, unsigned int *now, unsigned int *later) {
  (void)card, (void)now, (void)later;
  return 3;
}
int nvmlDeviceGetMemoryAffinity(card_t *card, unsigned int words, unsigned long *out, int scope) {
  if (words < 2 || scope != 0) return 2;
  memset(out, 0, words * sizeof *out);
  out[1] = 1UL << card->index;
  return answer(card);
}
int nvmlDeviceGetTopologyCommonAncestor(card_t *a, card_t *b, int *out) {
  *out = (a->index ^ b->index) == 1 ? 0 : 45;
  return answer(a) != 0 ? answer(a) : answer(b);
}
int nvmlDeviceGetTotalEccErrors(card_t *card, int kind, int counter, unsigned long long *out) {
  if (kind != 1 || counter != 0) return 2;
  int errors = 0;
  order("errors", card->index, 0, &errors);
  *out = (unsigned long long)errors;
  return answer(card);
}

/* Links 0 and 1 connect GPUs 0 and 1, link 2 of every GPU a switch, link 3 is down; link 1 is up at one end only. */
int nvmlDeviceGetNvLinkState(card_t *card, unsigned int link, unsigned int *up) {
  if (link > 3) return 2;
  *up = link == 2 || (card->index < 2 && link == 0) || (card->index == 0 && link == 1);
  return answer(card);
}
int nvmlDeviceGetNvLinkRemoteDeviceType(card_t *card, unsigned int link, int *type) {
  *type = link == 2 ? 2 : 0;
  return answer(card);
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(card_t *card, unsigned int link, char *out) {
  card_t other = {card->index ^ 1};
  (void)link;
  bus_id(&other, 4, out);
  bus_id(&other, 8, out + 36);
  return answer(card);
}

typedef struct {
  unsigned int pid;
  unsigned long long used;
  unsigned int instances[2];
} process_t;

static int processes(card_t *card, unsigned int *number, process_t *out, int first) {
  unsigned int all = (unsigned int)order("processes", -1, 0, NULL);
  unsigned int room = *number;
  *number = all;
  if (room < all) return 7;
  for (unsigned int at = 0; at < all; at++) {
    out[at].pid = (unsigned int)first + at;
    out[at].used = 1000 * (at + 1);
  }
  return answer(card);
}
int nvmlDeviceGetComputeRunningProcesses_v3(card_t *card, unsigned int *number, process_t *out) { return processes(card, number, out, 1000); }
/* The last compute process is a graphics process, too; its memory is listed as larger here. */
int nvmlDeviceGetGraphicsRunningProcesses_v3(card_t *card, unsigned int *number, process_t *out) {
  unsigned int all = (unsigned int)order("processes", -1, 0, NULL);
  if (*number < 1) return 7;
  *number = all > 0;
  out[0].pid = 1000 + all - 1;
  out[0].used = 1000 * (all + 5);
  return answer(card);
}
int nvmlDeviceGetProcessUtilization(card_t *card, struct { unsigned int pid; unsigned long long at; unsigned int sm, rest[3]; } *out, unsigned int *number, unsigned long long since) {
  if (order("processes", -1, 0, NULL) == 0) return 6;
  *number = 1;
  out[0].pid = 1000;
  out[0].at = since;
  out[0].sm = 42;
  return answer(card);
}

static int events_of[16];
int nvmlEventSetCreate(int **set) {
  *set = events_of;
  return initialised ? 0 : 1;
}
int nvmlEventSetFree(int *set) { return set == events_of ? 0 : 2; }
int nvmlDeviceGetSupportedEventTypes(card_t *card, unsigned long long *types) {
  *types = 0x1f;
  return answer(card);
}
int nvmlDeviceRegisterEvents(card_t *card, unsigned long long types, int *set) {
  set[card->index] = 0;
  return types == 10 ? answer(card) : 2;
}
int nvmlEventSetWait_v2(int *set, struct { card_t *card; unsigned long long type, data; unsigned int instances[2]; } *event, unsigned int milliseconds) {
  if (milliseconds != 0) return 2;
  if (!initialised) return 1;
  for (int index = 0; index < 16; index++) {
    int xid = 0;
    order("events", index, -1, &xid);
    if (xid == set[index]) continue;
    set[index] = xid;
    if (xid == 0) continue;
    event->card = &cards[index];
    event->type = xid < 0 ? 2 : 8;
    event->data = (unsigned long long)xid;
    return 0;
  }
  return 10;
}

#endif
