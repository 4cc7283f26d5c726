#include "hpack.h"
#include <string.h>

#define TEXT_ROOM 512

/* Lengths of the Huffman codes of RFC 7541, appendix B, by symbol. The code is canonical, so the lengths define it.
 * Symbol 256 ends a text. */
static const uint8_t code_lengths[257] = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,  5,  5,  5,  6,  6,  6,  6,  6,  6,  6,
    7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
    7,  8,  7,  8,  13, 19, 13, 14, 6,  15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,
    5,  6,  7,  7,  7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24,
    24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22,
    23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26,
    27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23,
    22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30};

#define LONGEST_CODE 30

static size_t put(uint8_t *block, size_t length, size_t room, uint8_t byte) {
  if (length < room) block[length++] = byte;
  return length;
}

/* Texts of this client are shorter than 16 KiB. Lengths from 127 on continue in further bytes. */
static size_t put_text(uint8_t *block, size_t length, size_t room, const char *text) {
  size_t size = strlen(text);
  if (size < 127) {
    length = put(block, length, room, (uint8_t)size);
  } else {
    length = put(block, length, room, 127);
    size_t rest = size - 127;
    for (; rest >= 128; rest >>= 7)
      length = put(block, length, room, (uint8_t)(rest | 128));
    length = put(block, length, room, (uint8_t)rest);
  }
  for (const char *at = text; *at != '\0'; at++)
    length = put(block, length, room, (uint8_t)*at);
  return length;
}

size_t hpack_write(uint8_t *block, size_t length, size_t room, unsigned int index, const char *name,
                   const char *value) {
  /* A literal without indexing; numbers from 15 on need a second byte. */
  length = put(block, length, room, (uint8_t)(index < 15 ? index : 15));
  if (index >= 15) length = put(block, length, room, (uint8_t)(index - 15));
  if (index == 0) length = put_text(block, length, room, name);
  return put_text(block, length, room, value);
}

struct reader {
  const uint8_t *at;
  const uint8_t *end;
  bool failed;
};

static uint32_t read_number(struct reader *reader, unsigned int prefix_bits) {
  uint32_t most = (1u << prefix_bits) - 1;
  if (reader->at == reader->end) {
    reader->failed = true;
    return 0;
  }
  uint32_t number = *reader->at++ & most;
  if (number < most) return number;
  for (unsigned int shift = 0; shift < 28 && reader->at < reader->end; shift += 7) {
    uint8_t byte = *reader->at++;
    number += (uint32_t)(byte & 127) << shift;
    if ((byte & 128) == 0) return number;
  }
  reader->failed = true;
  return 0;
}

/* The symbol with the code `code` of `length` bits; -1 if there is none. */
static int symbol_of(uint32_t code, unsigned int length) {
  uint32_t next = 0;
  for (unsigned int bits = 1; bits <= length; bits++) {
    next <<= 1;
    for (int symbol = 0; symbol < 257; symbol++) {
      if (code_lengths[symbol] != bits) continue;
      if (bits == length && next == code) return symbol;
      next++;
    }
  }
  return -1;
}

static void read_huffman(const uint8_t *from, uint32_t size, char *text) {
  size_t length = 0;
  uint32_t code = 0;
  unsigned int bits = 0;
  for (uint32_t i = 0; i < size * 8; i++) {
    code = code << 1 | (from[i / 8] >> (7 - i % 8) & 1);
    if (++bits > LONGEST_CODE) break;
    int symbol = bits >= 5 ? symbol_of(code, bits) : -1;
    if (symbol < 0) continue;
    if (symbol == 256 || length == TEXT_ROOM - 1) break;
    text[length++] = (char)symbol;
    code = 0;
    bits = 0;
  }
  text[length] = '\0';
}

static void read_text(struct reader *reader, char *text) {
  bool huffman = reader->at < reader->end && (*reader->at & 128) != 0;
  uint32_t size = read_number(reader, 7);
  text[0] = '\0';
  if (reader->failed || size > (size_t)(reader->end - reader->at)) {
    reader->failed = true;
    return;
  }
  if (huffman) {
    read_huffman(reader->at, size, text);
  } else {
    size_t length = size < TEXT_ROOM - 1 ? size : TEXT_ROOM - 1;
    memcpy(text, reader->at, length);
    text[length] = '\0';
  }
  reader->at += size;
}

bool hpack_read(const uint8_t *block, size_t length, void (*field)(const char *name, const char *value, void *with),
                void *with) {
  struct reader reader = {.at = block, .end = block + length};
  char name[TEXT_ROOM], value[TEXT_ROOM];
  while (reader.at < reader.end && !reader.failed) {
    uint8_t first = *reader.at;
    if (first & 128) { /* an indexed field of the static table */
      read_number(&reader, 7);
      continue;
    }
    if ((first & 0xe0) == 0x20) { /* a change of the dynamic table's size */
      read_number(&reader, 5);
      continue;
    }
    uint32_t index = read_number(&reader, first & 64 ? 6 : 4);
    name[0] = '\0';
    if (index == 0) read_text(&reader, name);
    if (!reader.failed) read_text(&reader, value);
    if (!reader.failed && index == 0) field(name, value, with);
  }
  return !reader.failed;
}
