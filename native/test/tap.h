/* The C test framework. A test is a program that shows one behaviour: it states the behaviour in TEST_BEGIN, checks it,
 * and returns TEST_END. The exit code tells the runner (test/run): 0 passed, 1 failed, 77 skipped. */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAP_PASS = 0, TAP_FAIL = 1, TAP_SKIP = 77 };

static int tap_failures;

/* The first line of output is the title of the test. */
#define TEST_BEGIN(sentence)                                                                                           \
  do {                                                                                                                 \
    setvbuf(stdout, NULL, _IOLBF, 0);                                                                                  \
    puts(sentence);                                                                                                    \
  } while (0)

#define TEST_END (tap_failures == 0 ? TAP_PASS : TAP_FAIL)

/* Ends the test and prints why it cannot run here. */
#define TEST_SKIP(...)                                                                                                 \
  do {                                                                                                                 \
    printf("skip: " __VA_ARGS__);                                                                                      \
    putchar('\n');                                                                                                     \
    exit(TAP_SKIP);                                                                                                    \
  } while (0)

/* For tests that measure time or start themselves again: skipped under valgrind. */
#define TEST_NOT_WRAPPED(why)                                                                                          \
  do {                                                                                                                 \
    if (getenv("WRAPPER") != NULL) TEST_SKIP("not under valgrind: " why);                                              \
  } while (0)

__attribute__((format(printf, 3, 4), unused)) static void tap_fail(const char *file, int line, const char *format,
                                                                   ...) {
  va_list arguments;
  tap_failures++;
  printf("%s:%d: ", file, line);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
}

/* Records a failure and continues. */
#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) tap_fail(__FILE__, __LINE__, "%s", #condition);                                                  \
  } while (0)

/* Records a failure and ends the test, because later checks would be meaningless. */
#define REQUIRE(condition)                                                                                             \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      tap_fail(__FILE__, __LINE__, "%s", #condition);                                                                  \
      exit(TAP_FAIL);                                                                                                  \
    }                                                                                                                  \
  } while (0)

/* Compares two integers. */
#define CHECK_EQ(actual, expected)                                                                                     \
  do {                                                                                                                 \
    long long tap_actual = (long long)(actual), tap_expected = (long long)(expected);                                  \
    if (tap_actual != tap_expected)                                                                                    \
      tap_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #actual, tap_actual, tap_expected);                         \
  } while (0)

/* Checks that a number lies in a range, bounds included. */
#define CHECK_BETWEEN(actual, low, high)                                                                               \
  do {                                                                                                                 \
    double tap_actual = (double)(actual), tap_low = (double)(low), tap_high = (double)(high);                          \
    if (tap_actual < tap_low || tap_actual > tap_high)                                                                 \
      tap_fail(__FILE__, __LINE__, "%s is %g, not within %g and %g", #actual, tap_actual, tap_low, tap_high);          \
  } while (0)

#define CHECK_TEXT(actual, expected)                                                                                   \
  do {                                                                                                                 \
    const char *tap_actual = (actual), *tap_expected = (expected);                                                     \
    if (strcmp(tap_actual, tap_expected) != 0)                                                                         \
      tap_fail(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #actual, tap_actual, tap_expected);                     \
  } while (0)

#endif
