/*
 * The part of HPACK (RFC 7541) that one call needs. Requests are written as literals, and only literal fields of
 * responses are read. The client allows no dynamic table, so names outside of the static table, such as grpc-status,
 * always arrive as literals.
 */
#ifndef CLIENT_HPACK_H
#define CLIENT_HPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appends a field whose name is entry `index` of the static table, or `name` if index is 0. Returns the new length. */
size_t hpack_write(uint8_t *block, size_t length, size_t room, unsigned int index, const char *name, const char *value);

/*
 * Calls `field` for every literal field of a header block; false if the block is malformed. Longer texts are truncated.
 */
bool hpack_read(const uint8_t *block, size_t length, void (*field)(const char *name, const char *value, void *with),
                void *with);

#endif
