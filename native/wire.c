/* Frames in, and the bounded queue of events out. */
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

/* Task pipes have an epoll of their own, so that back-pressure is one call: the inner one leaves the outer one. */
static int outer, inner, in_fd, out_fd;
static uint8_t *queue;
static size_t queue_start, queue_end, queue_capacity;
static bool out_urgent, out_watched, out_waits;
static int64_t progress;

bool out_broken, out_paused;

#define WAS_ENDED 0x80 /* in the kind of an exit: somebody asked for its end before it ended */

size_t wire_queued(void) { return queue_end - queue_start; }

/* When the agent last took something from us. */
int64_t wire_progress(void) { return progress; }

static void watch_inner(bool on) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 2};
  epoll_ctl(outer, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, inner, &event);
}

void wire_open(int epoll, int in, int out) {
  outer = epoll;
  in_fd = in;
  out_fd = out;
  inner = epoll_create1(EPOLL_CLOEXEC);
  fcntl(in, F_SETFL, O_NONBLOCK);
  fcntl(out, F_SETFL, O_NONBLOCK);
  struct epoll_event event = {.events = 0, .data.u64 = 1}; /* only an error: the agent went away */
  out_watched = epoll_ctl(outer, EPOLL_CTL_ADD, out, &event) == 0;
  watch_inner(true);
  progress = now_ms();
}

/* Nobody reads any more: whatever is queued or comes later is dropped, so that tasks never block on us. */
void wire_abandon(void) {
  if (out_broken) return;
  out_broken = true;
  queue_start = queue_end = 0;
  if (out_watched) epoll_ctl(outer, EPOLL_CTL_DEL, out_fd, NULL);
  out_watched = false;
  if (out_paused) watch_inner(true);
  out_paused = false;
}

static uint8_t *reserve(size_t size) {
  if (queue_capacity - queue_end < size && queue_start > queue_capacity / 2) {
    memmove(queue, queue + queue_start, queue_end - queue_start);
    queue_end -= queue_start;
    queue_start = 0;
  }
  if (queue_capacity - queue_end < size) {
    size_t wanted = queue_end + size;
    queue_capacity = wanted > queue_capacity * 2 ? wanted : queue_capacity * 2;
    queue = grow(queue, queue_capacity);
  }
  return queue + queue_end;
}

static uint8_t *put(uint8_t *at, const void *value, size_t size) {
  memcpy(at, value, size); /* hosts are little-endian: checked at start */
  return at + size;
}

static uint8_t *put_u32(uint8_t *at, uint32_t value) { return put(at, &value, 4); }
static uint8_t *put_f64(uint8_t *at, double value) { return put(at, &value, 8); }

/* What is queued is worth waking the agent for. */
void wire_hurry(void) { out_urgent = true; }

/* Sends as much as the agent takes; one write per turn of the loop. `started` alone is not worth waking it for. */
void wire_flush(bool urgent_only) {
  if (!out_broken && !out_waits && wire_queued() && (out_urgent || !urgent_only)) {
    ssize_t sent = write(out_fd, queue + queue_start, wire_queued());
    if (sent >= 0) {
      queue_start += (size_t)sent;
      progress = now_ms();
    } else if (errno != EAGAIN && errno != EINTR) {
      wire_abandon();
      stop_all();
      return;
    }
    bool waits = wire_queued() > 0;
    if (waits && out_watched) {
      struct epoll_event event = {.events = EPOLLOUT, .data.u64 = 1};
      epoll_ctl(outer, EPOLL_CTL_MOD, out_fd, &event);
      out_waits = true;
      progress = now_ms();
    }
  }
  if (wire_queued() == 0) {
    queue_start = queue_end = 0;
    out_urgent = false;
    if (queue_capacity > OUT_LOW) {
      free(queue);
      queue = NULL;
      queue_capacity = 0;
    }
  }
  if (out_paused && wire_queued() < OUT_LOW) {
    out_paused = false;
    watch_inner(true);
  }
}

/* epoll reported stdout: the agent takes more, or is gone. */
void wire_out_ready(bool gone) {
  if (gone) {
    wire_abandon();
    stop_all();
    return;
  }
  struct epoll_event event = {.events = 0, .data.u64 = 1};
  epoll_ctl(outer, EPOLL_CTL_MOD, out_fd, &event);
  out_waits = false;
  out_urgent = true;
}

/* Some tasks wrote: one read from each, so that none keeps the others waiting. */
void wire_outputs(void) {
  struct epoll_event events[32];
  int count = epoll_wait(inner, events, 32, 0);
  for (int i = 0; i < count; i++) {
    struct task *task = (struct task *)(uintptr_t)(events[i].data.u64 & ~(uint64_t)1);
    int which = (int)(events[i].data.u64 & 1);
    if (task->fd[which] >= 0 && !out_paused) wire_pump(task, which, CHUNK);
  }
}

void wire_watch_outputs(struct task *task) {
  for (int which = 0; which < 2; which++) {
    if (task->fd[which] < 0) continue;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)(uintptr_t)task | (uint64_t)which};
    fcntl(task->fd[which], F_SETFL, O_NONBLOCK);
    epoll_ctl(inner, EPOLL_CTL_ADD, task->fd[which], &event);
  }
}

/* Leaves epoll before closing: a forked helper may still hold a copy of the descriptor. */
void wire_close_output(struct task *task, int which) {
  if (task->fd[which] < 0) return;
  if (task->announced) epoll_ctl(inner, EPOLL_CTL_DEL, task->fd[which], NULL);
  close(task->fd[which]);
  task->fd[which] = -1;
}

/* One read from a task, straight into the queue. Returns the bytes read; the pipe is closed at its end. */
ssize_t wire_pump(struct task *task, int which, size_t limit) {
  uint8_t *frame = reserve(10 + CHUNK);
  ssize_t size = read(task->fd[which], frame + 10, limit < CHUNK ? limit : CHUNK);
  if (size > 0 && !out_broken) {
    frame = put_u32(frame, 6 + (uint32_t)size);
    *frame++ = EV_OUTPUT;
    frame = put_u32(frame, task->id);
    *frame++ = (uint8_t)(which + 1);
    queue_end += 10 + (size_t)size;
    out_urgent = true;
    if (!out_paused && wire_queued() >= OUT_HIGH) {
      out_paused = true;
      watch_inner(false);
    }
  } else if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
    wire_close_output(task, which);
  }
  return size;
}

void send_hello(void) {
  uint8_t *at = reserve(14);
  at = put_u32(at, 9);
  *at++ = EV_HELLO;
  at = put_u32(at, PROTOCOL_VERSION);
  put_u32(at, (uint32_t)getpid());
  queue_end += 13;
  out_urgent = true;
}

void send_started(const struct task *task) {
  if (out_broken) return;
  uint8_t *at = reserve(13);
  at = put_u32(at, 9);
  *at++ = EV_STARTED;
  at = put_u32(at, task->id);
  put_u32(at, (uint32_t)task->pid);
  queue_end += 13;
}

static double milliseconds(struct timeval time) { return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3; }

void send_exit(const struct task *task) {
  if (out_broken) return;
  uint8_t kind = 0;
  uint32_t value = 0;
  if (task->stage == STAGE_EXEC) value = task->error == ENOENT ? 127 : 126;
  else if (task->stage != STAGE_NONE) kind = 2;
  else if (WIFSIGNALED(task->status)) kind = 1, value = (uint32_t)WTERMSIG(task->status);
  else value = (uint32_t)WEXITSTATUS(task->status);
  if (task->ending) kind |= WAS_ENDED;
  uint8_t *at = reserve(92);
  at = put_u32(at, 87);
  *at++ = EV_EXIT;
  at = put_u32(at, task->id);
  *at++ = kind;
  at = put_u32(at, value);
  *at++ = (uint8_t)task->stage;
  at = put_u32(at, (uint32_t)task->error);
  at = put_u32(at, task->strays);
  at = put_f64(at, task->started);
  at = put_f64(at, task->ended);
  at = put_f64(at, (double)task->usage.ru_maxrss * 1024);
  at = put_f64(at, milliseconds(task->usage.ru_utime));
  at = put_f64(at, milliseconds(task->usage.ru_stime));
  at = put_f64(at, task->cgroup_peak);
  at = put_f64(at, (double)task->usage.ru_inblock * 512); /* the unit on Linux, whatever the device */
  at = put_f64(at, (double)task->usage.ru_oublock * 512);
  put_u32(at, task->oom_kills);
  queue_end += 91;
  out_urgent = true;
}

uint32_t get_u32(struct cursor *cursor) {
  uint32_t value = 0;
  if (cursor->end - cursor->at < 4) return cursor->bad = true, 0;
  memcpy(&value, cursor->at, 4);
  cursor->at += 4;
  return value;
}

/* Text is sent with its length and a NUL behind it: used in place, never copied; a NUL inside is malformed. */
static char *text_of(struct cursor *cursor, uint32_t length) {
  if (cursor->bad || (size_t)(cursor->end - cursor->at) <= length ||
      memchr(cursor->at, 0, (size_t)length + 1) != cursor->at + length)
    return cursor->bad = true, NULL;
  char *text = (char *)(uintptr_t)cursor->at;
  cursor->at += length + 1;
  return text;
}

char *get_text(struct cursor *cursor) { return text_of(cursor, get_u32(cursor)); }

char *get_optional(struct cursor *cursor) {
  uint32_t length = get_u32(cursor);
  return length == NONE ? NULL : text_of(cursor, length);
}

/* Reads once and hands over every complete frame. False at the end of stdin. */
bool wire_read(void (*request)(uint8_t type, struct cursor *body)) {
  static uint8_t *buffer;
  static size_t used, capacity;
  size_t room = CHUNK;
  if (used >= 4) {
    uint32_t length;
    memcpy(&length, buffer, 4);
    if (length + 4 > used + room) room = length + 4 - used;
  }
  if (capacity < used + room) buffer = grow(buffer, capacity = used + room);
  ssize_t size = read(in_fd, buffer + used, capacity - used);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  used += (size_t)size;
  size_t at = 0;
  while (used - at >= 4 && !stopping) {
    uint32_t length;
    memcpy(&length, buffer + at, 4);
    if (length == 0 || length > MAX_FRAME) {
      protocol_error("a frame has an impossible length");
      break;
    }
    if (used - at - 4 < length) break;
    struct cursor body = {buffer + at + 5, buffer + at + 4 + length, false};
    request(buffer[at + 4], &body);
    at += 4 + (size_t)length;
  }
  memmove(buffer, buffer + at, used - at);
  used -= at;
  if (used == 0 && capacity > OUT_LOW) {
    free(buffer);
    buffer = NULL;
    capacity = 0;
  }
  return true;
}
