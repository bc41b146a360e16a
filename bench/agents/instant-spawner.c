/*
 * Speaks the spawner's protocol (src/agent/spawner/protocol.ts) and starts nothing: each task has ended, with exit code 0,
 * as soon as it is read. So `agent-loop` measures the agent alone. Usage: in place of dist/slipway-spawner.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef PROTOCOL
#error "compile with -DPROTOCOL=<version> -DEXIT_BYTES=<size of the body of EXIT>"
#endif

enum { START = 3, HELLO = 64, EXIT = 67 };

static uint8_t in[1 << 20], out[1 << 20];
static size_t in_used, out_used;

static void flush(void) {
  for (size_t sent = 0; sent < out_used;) {
    ssize_t size = write(1, out + sent, out_used - sent);
    if (size < 0 && errno != EINTR) exit(0);
    if (size > 0) sent += (size_t)size;
  }
  out_used = 0;
}

static uint8_t *frame(uint8_t type, uint32_t body) {
  if (sizeof out - out_used < body + 5) flush();
  uint8_t *at = out + out_used;
  uint32_t length = body + 1;
  memcpy(at, &length, 4);
  at[4] = type;
  memset(at + 5, 0, body);
  out_used += body + 5;
  return at + 5;
}

/* The clocks of start and end stand at the same places in every version so far: 18 and 26 bytes behind the id. */
static void ended(const uint8_t *id) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  double ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
  uint8_t *body = frame(EXIT, EXIT_BYTES);
  memcpy(body, id, 4);
  memcpy(body + 18, &ms, 8);
  memcpy(body + 26, &ms, 8);
}

int main(void) {
  uint32_t hello[2] = {PROTOCOL, (uint32_t)getpid()};
  memcpy(frame(HELLO, sizeof hello), hello, sizeof hello);
  flush();
  for (ssize_t size; (size = read(0, in + in_used, sizeof in - in_used)) > 0;) {
    in_used += (size_t)size;
    size_t at = 0;
    for (uint32_t length; in_used - at >= 4; at += 4 + (size_t)length) {
      memcpy(&length, in + at, 4);
      if (length == 0 || length > sizeof in - 4) return 2;
      if (in_used - at - 4 < length) break;
      if (in[at + 4] == START) ended(in + at + 5);
    }
    memmove(in, in + at, in_used - at);
    in_used -= at;
    flush();
  }
  return 0;
}
