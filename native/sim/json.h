/* Reads JSON in place, without copies or allocation. A value is a position in the text, and reading only moves forward.
 * Malformed input is rejected with its line number. */
#ifndef SIM_JSON_H
#define SIM_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct json {
  const char *text;  /* the whole text, for line numbers */
  const char *at;    /* the next character */
  const char *wrong; /* first error; NULL: none. Every call does nothing once it is set. */
  int line;          /* of the error */
};

void json_begin(struct json *json, const char *text);

/* Iterates over an object: `for (json_open_object(j); json_next_key(j, key, sizeof key);) { read or json_skip }`. */
void json_open_object(struct json *json);
bool json_next_key(struct json *json, char *key, size_t size);

/* Iterates over a list: `for (json_open_list(j); json_next_item(j);) { read or json_skip }`. */
void json_open_list(struct json *json);
bool json_next_item(struct json *json);

/* Reads one value. A text longer than `size` is an error. */
long long json_integer(struct json *json, long long low, long long high);
bool json_null(struct json *json);
void json_text(struct json *json, char *text, size_t size);
void json_skip(struct json *json);

/* Checks that only white space follows. */
void json_end(struct json *json);

void json_refuse(struct json *json, const char *why);

#endif
