/*
 * Reads JSON text in place: no copies, no allocation. A value is a place in the text; reading goes forward. Strict
 * enough that a broken file is refused with the line where it breaks.
 */
#ifndef SIM_JSON_H
#define SIM_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct json {
  const char *text;  /* the whole text, for line numbers */
  const char *at;    /* the next character */
  const char *wrong; /* first complaint; NULL: none. Every call does nothing once it is set. */
  int line;          /* of the complaint */
};

void json_begin(struct json *json, const char *text);

/* Walks an object: `for (json_open_object(j); json_next_key(j, key, sizeof key);) { read or json_skip }`. */
void json_open_object(struct json *json);
bool json_next_key(struct json *json, char *key, size_t size);

/* Walks a list: `for (json_open_list(j); json_next_item(j);) { read or json_skip }`. */
void json_open_list(struct json *json);
bool json_next_item(struct json *json);

/* Reads one value. Texts that are longer than `size` are a complaint. */
long long json_integer(struct json *json, long long low, long long high);
bool json_null(struct json *json);
void json_text(struct json *json, char *text, size_t size);
void json_skip(struct json *json);

/* Nothing but blanks may follow. */
void json_end(struct json *json);

void json_refuse(struct json *json, const char *why);

#endif
