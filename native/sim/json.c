#include "json.h"

#include <stdlib.h>
#include <string.h>

void json_begin(struct json *json, const char *text) {
  *json = (struct json){.text = text, .at = text};
}

void json_refuse(struct json *json, const char *why) {
  if (json->wrong != NULL) return;
  json->wrong = why;
  json->line = 1;
  for (const char *p = json->text; p < json->at; p++)
    json->line += *p == '\n';
}

static char peek(struct json *json) {
  while (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r')
    json->at++;
  return *json->at;
}

static bool take(struct json *json, char expected) {
  if (json->wrong != NULL || peek(json) != expected) return false;
  json->at++;
  return true;
}

static void open(struct json *json, char bracket, const char *why) {
  if (!take(json, bracket)) json_refuse(json, why);
}

/* After an opening bracket or a value: whether another element follows. */
static bool next(struct json *json, char bracket, char close) {
  if (json->wrong != NULL) return false;
  char before = json->at[-1];
  bool first = before == bracket;
  if (take(json, close)) return false;
  if (first) return true;
  if (!take(json, ',')) {
    json_refuse(json, "a comma or a closing bracket is missing");
    return false;
  }
  return true;
}

void json_open_object(struct json *json) {
  open(json, '{', "an object is expected");
}

bool json_next_key(struct json *json, char *key, size_t size) {
  if (!next(json, '{', '}')) return false;
  json_text(json, key, size);
  if (!take(json, ':')) json_refuse(json, "a colon is missing");
  return json->wrong == NULL;
}

void json_open_list(struct json *json) {
  open(json, '[', "a list is expected");
}

bool json_next_item(struct json *json) {
  return next(json, '[', ']') && json->wrong == NULL;
}

long long json_integer(struct json *json, long long low, long long high) {
  if (json->wrong != NULL) return low;
  char first = peek(json);
  char *end = NULL;
  long long value = strtoll(json->at, &end, 10);
  bool number = (first == '-' || (first >= '0' && first <= '9')) && end != json->at;
  if (!number || *end == '.' || *end == 'e' || *end == 'E' || value < low || value > high) {
    json_refuse(json, "a whole number within the allowed range is expected");
    return low;
  }
  json->at = end;
  return value;
}

bool json_null(struct json *json) {
  if (json->wrong != NULL || peek(json) != 'n' || strncmp(json->at, "null", 4) != 0) return false;
  json->at += 4;
  return true;
}

void json_text(struct json *json, char *text, size_t size) {
  size_t length = 0;
  text[0] = 0;
  if (!take(json, '"')) {
    json_refuse(json, "a text is expected");
    return;
  }
  while (*json->at != '"') {
    unsigned char c = (unsigned char)*json->at;
    if (c < ' ' || length + 1 >= size) {
      json_refuse(json, c < ' ' ? "a text does not end" : "a text is too long");
      return;
    }
    if (c == '\\') {
      /* Names of GPUs and keys need no other escapes. */
      c = (unsigned char)*++json->at;
      if (c != '"' && c != '\\' && c != '/') {
        json_refuse(json, "an escape that is not known here");
        return;
      }
    }
    text[length++] = (char)c;
    json->at++;
  }
  json->at++;
  text[length] = 0;
}

void json_skip(struct json *json) {
  char text[256];
  int depth = 0;
  do {
    char c = peek(json);
    if (json->wrong != NULL) return;
    if (c == '{' || c == '[') {
      depth++;
      json->at++;
    } else if (c == '}' || c == ']') {
      depth--;
      json->at++;
    } else if (c == '"') {
      json_text(json, text, sizeof text);
    } else if (c == 0) {
      json_refuse(json, "the text ends too early");
    } else if (depth > 0 && (c == ',' || c == ':')) {
      json->at++;
    } else {
      const char *begin = json->at;
      while (*json->at != 0 && strchr(",]} \t\r\n", *json->at) == NULL)
        json->at++;
      if (json->at == begin) json_refuse(json, "a value is expected");
    }
  } while (depth > 0 && json->wrong == NULL);
}

void json_end(struct json *json) {
  if (json->wrong == NULL && peek(json) != 0) json_refuse(json, "something follows the end");
}
