/*
 * Successors. A start may name a task that it follows: it waits here, as the bytes of its frame, and begins in the same
 * turn of the loop in which that one's exit is sent. So a slot is never idle for a round trip to the agent. One that is
 * ended while it waits is reported as dropped, and whatever waited for it waits for its predecessor instead.
 */
#include "spawner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u
#define ENOUGH 2 /* tasks that wait behind one: they last until the agent has answered */

struct waiting {
  struct waiting *next;
  uint32_t id, after;
  size_t size;
  uint8_t frame[];
};

static struct waiting *by_after[BUCKETS];
static unsigned count;
static bool hungry; /* an end since the last flush was not followed by ENOUGH others */

/* The link that points at the one with this id, or NULL. Only used when something is ended or queued behind it. */
static struct waiting **find(uint32_t id) {
  for (unsigned bucket = 0; count && bucket < BUCKETS; bucket++)
    for (struct waiting **link = &by_after[bucket]; *link; link = &(*link)->next)
      if ((*link)->id == id) return link;
  return NULL;
}

static void add(struct waiting *one) {
  one->next = by_after[one->after % BUCKETS];
  by_after[one->after % BUCKETS] = one;
  count++;
}

static struct waiting *take(struct waiting **link) {
  struct waiting *one = *link;
  *link = one->next;
  count--;
  return one;
}

void send_dropped(uint32_t id) {
  struct task task = {.id = id, .stage = STAGE_DROPPED, .error = ECANCELED};
  task.started = task.ended = epoch_ms();
  send_exit(&task);
}

static void start(struct waiting *one) {
  struct cursor body = {.at = one->frame, .end = one->frame + one->size};
  if (!start_task(&body)) send_dropped(one->id);
  free(one);
}

/* False when the frame is malformed. */
bool successor_request(struct cursor *body) {
  struct cursor peek = *body;
  uint32_t id = get_u32(&peek);
  get_u32(&peek);
  get_u32(&peek);
  uint32_t after = get_u32(&peek);
  if (peek.bad) return false;
  if (after == NONE || (!task_by_id(after) && !find(after))) return start_task(body);
  size_t size = (size_t)(body->end - body->at);
  struct waiting *one = grow(NULL, sizeof *one + size);
  one->id = id;
  one->after = after;
  one->size = size;
  memcpy(one->frame, body->at, size);
  add(one);
  return true;
}

/* Whether at least `enough` wait behind it, one after the other. */
static bool followed(uint32_t id, int enough) {
  for (struct waiting *one = by_after[id % BUCKETS]; enough && one; one = one->next)
    if (one->after == id) return followed(one->id, enough - 1);
  return enough == 0;
}

void successor_next(uint32_t ended) {
  hungry |= !followed(ended, ENOUGH + 1);
  if (!count || stopping) return;
  for (struct waiting **link = &by_after[ended % BUCKETS]; *link;) {
    if ((*link)->after != ended) link = &(*link)->next;
    else start(take(link));
  }
}

bool successor_drop(uint32_t id) {
  struct waiting **link = find(id);
  if (!link) return false;
  struct waiting *gone = take(link);
  send_dropped(id);
  for (link = &by_after[id % BUCKETS]; *link;) {
    if ((*link)->after != id) {
      link = &(*link)->next;
      continue;
    }
    struct waiting *heir = take(link);
    heir->after = gone->after;
    add(heir);
    link = &by_after[id % BUCKETS];
  }
  free(gone);
  return true;
}

void successors_clear(void) {
  for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
    while (by_after[bucket]) free(take(&by_after[bucket]));
}

/* Some slot is idle, or soon will be, unless the agent hears of ends now. Asking answers it. */
bool successors_wanted(void) {
  bool wanted = hungry || count == 0;
  hungry = false;
  return wanted;
}
