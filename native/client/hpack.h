/*
 * As much of HPACK (RFC 7541) as one call needs. Requests are written as literals; of answers only literal fields are
 * looked at: the client allows no dynamic table, so names that are not in the static one, grpc-status among them,
 * always come as literals.
 */
#ifndef CLIENT_HPACK_H
#define CLIENT_HPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appends a field whose name is number `index` of the static table, or `name` if index is 0. Returns the new length. */
size_t hpack_write(uint8_t *block, size_t length, size_t room, unsigned int index, const char *name, const char *value);

/* Calls `field` for every literal field of a header block; false when the block is malformed. Texts are cut at their
 * room. */
bool hpack_read(const uint8_t *block, size_t length, void (*field)(const char *name, const char *value, void *with),
                void *with);

#endif
