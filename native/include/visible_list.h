/*
 * How the driver reads CUDA_VISIBLE_DEVICES. NVIDIA documents only that the list ends at the first invalid item; the
 * rest is what PyTorch's parser and its tests (torch/cuda/__init__.py, test/test_cuda.py) describe:
 * - The first item decides whether the items are UUIDs of GPUs, UUIDs of MIG instances, or numbers. An item of another
 *   kind ends the list.
 * - A number may have spaces around it and a sign, and ends at the first other character: " +1gpu" is 1. A negative
 *   one, and an item without a number, ends the list.
 * - A UUID may be shortened. A prefix that fits several GPUs ends the list.
 * - A repeated item, or two items for the same GPU, make the list empty.
 */
#ifndef VISIBLE_LIST_H
#define VISIBLE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strings.h>

#define VISIBLE_LIST_MOST 64

/* Whether item `text`, which begins with "GPU-" or "MIG-", may name GPU `gpu`. */
typedef bool visible_list_names(uint32_t gpu, const char *text, size_t length);

struct visible_item {
  const char *text;
  size_t length;
  uint64_t number; /* of a GPU; not set in lists of UUIDs */
};

static inline bool visible_list_is_uuid(const char *text) {
  return strncasecmp(text, "GPU-", 4) == 0 || strncasecmp(text, "MIG-", 4) == 0;
}

static inline bool visible_list_is_space(char letter) {
  return letter == ' ' || (letter >= '\t' && letter <= '\r');
}

static inline bool visible_list_number(struct visible_item *item) {
  const char *at = item->text, *end = item->text + item->length;
  while (at < end && visible_list_is_space(*at))
    at++;
  bool negative = at < end && *at == '-';
  if (at < end && (*at == '+' || *at == '-')) at++;
  const char *digits = at;
  for (item->number = 0; at < end && *at >= '0' && *at <= '9'; at++)
    if (item->number < UINT32_MAX) item->number = item->number * 10 + (uint64_t)(*at - '0');
  return at > digits && (!negative || item->number == 0);
}

/* Splits the list up to the item that ends it. Returns the number of items, 0 if one is repeated. */
static inline uint32_t visible_list_split(const char *list, struct visible_item items[VISIBLE_LIST_MOST]) {
  bool uuids = visible_list_is_uuid(list), more = true;
  const char *kind = list;
  uint32_t count = 0;
  while (more && count < VISIBLE_LIST_MOST) {
    struct visible_item *item = &items[count];
    *item = (struct visible_item){.text = list};
    while (list[item->length] != '\0' && list[item->length] != ',')
      item->length++;
    more = list[item->length] == ',';
    list += item->length + 1;
    if (uuids ? strncasecmp(item->text, kind, 4) != 0 : !visible_list_number(item)) return count;
    for (uint32_t i = 0; i < count; i++) {
      bool same_text = items[i].length == item->length && strncasecmp(items[i].text, item->text, item->length) == 0;
      if (uuids ? same_text : items[i].number == item->number) return 0;
    }
    count++;
  }
  return count;
}

/*
 * Writes the GPUs that the list selects to `chosen` and returns their number. `count` GPUs have UUIDs; the first
 * `numbered` of them are selected by number as well.
 */
static inline uint32_t visible_list_read(const char *list, uint32_t count, uint32_t numbered, visible_list_names *names,
                                         uint32_t chosen[VISIBLE_LIST_MOST]) {
  struct visible_item items[VISIBLE_LIST_MOST];
  uint32_t length = visible_list_split(list, items);
  for (uint32_t at = 0; at < length; at++) {
    uint32_t found = 0;
    if (!visible_list_is_uuid(list)) {
      if (items[at].number >= numbered) return at;
      chosen[at] = (uint32_t)items[at].number;
      continue;
    }
    for (uint32_t i = 0; i < count; i++) {
      if (!names(i, items[at].text, items[at].length)) continue;
      chosen[at] = i;
      found++;
    }
    if (found != 1) return at;
    for (uint32_t i = 0; i < at; i++)
      if (chosen[i] == chosen[at]) return 0;
  }
  return length;
}

#endif
