/*
 * Who belongs to which task. We are a subreaper: whatever a task leaves behind, however often it forked and whatever
 * session it made, becomes our child when its parent dies. So everything alive below us is below a task's main process
 * or below an orphan: a child of ours that is not a main process. One small read of /proc shows every orphan.
 *
 * An orphan belongs to the task of its session or process group, or else to the task whose SLIPWAY_TOKEN is in its
 * environment. One that cleared its environment belongs to no task we know; it is killed when every task that was alive
 * when it was first seen has ended.
 */
#include "spawner.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 1024u

struct orphan {
  struct orphan *next;
  pid_t pid;
  struct task *owner;
  uint64_t seq;          /* the newest task when it was first seen */
  bool unclear;          /* its environment could not be read yet (it may be in the middle of an exec) */
  bool killed, immortal; /* immortal: not ours to kill (setuid) */
};

struct process {
  pid_t pid, parent, group, session;
  long threads;
  char state;
};

static struct orphan *orphans[BUCKETS];
static unsigned orphan_count;
/* Descendants of orphans that got KILL together with them, so that we recognise them when they become our children. */
static struct {
  pid_t pid;
  struct task *owner;
} *doomed;
static size_t doomed_count;

static int children_fd = -1;
static pid_t self;
static unsigned strangers; /* children in the latest scan that are nobody's main process, dead or alive */

void sweep_init(void) {
  char path[64];
  self = getpid();
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)self);
  children_fd = open(path, O_RDONLY | O_CLOEXEC); /* absent in a few kernels: then all of /proc is read */
}

static bool read_process(pid_t pid, struct process *process) {
  char path[32], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return false;
  text[size] = 0;
  char *after = strrchr(text, ')'); /* the name may contain anything, even parentheses */
  int parent, group, session;
  static const char format[] = " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld";
  if (!after || sscanf(after + 1, format, &process->state, &parent, &group, &session, &process->threads) != 5) return false;
  process->pid = pid;
  process->parent = parent;
  process->group = group;
  process->session = session;
  return true;
}

/* A process whose first thread has ended looks like a zombie while its other threads run. */
static bool is_dead(const struct process *process) {
  return strchr("ZXx", process->state) != NULL && process->threads <= 1;
}

/* All processes, in order of pid (the order in which /proc lists them). */
static struct process *read_processes(size_t *count) {
  static struct process *list;
  static size_t capacity;
  *count = 0;
  DIR *dir = opendir("/proc");
  if (!dir) return list;
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    if (*count == capacity) list = grow(list, (capacity = capacity ? capacity * 2 : 256) * sizeof *list);
    if (read_process(atoi(entry->d_name), &list[*count])) ++*count;
  }
  closedir(dir);
  return list;
}

/* The child of ours that a process descends from (perhaps itself), or 0. */
static pid_t root_of(const struct process *list, size_t count, const struct process *process) {
  for (size_t steps = 0; steps <= count; steps++) {
    if (process->parent == self) return process->pid;
    size_t low = 0, high = count;
    while (low < high) {
      size_t middle = (low + high) / 2;
      if (list[middle].pid < process->parent) low = middle + 1;
      else high = middle;
    }
    if (low == count || list[low].pid != process->parent) return 0;
    process = &list[low];
  }
  return 0;
}

static struct orphan *find_orphan(pid_t pid) {
  struct orphan *orphan = orphans[(unsigned)pid % BUCKETS];
  while (orphan && orphan->pid != pid) orphan = orphan->next;
  return orphan;
}

static struct task *owner_by_session(const struct process *process) {
  struct task *task = task_by_pid(process->session);
  if (!task) task = task_by_pid(process->group);
  if (task || !tasks_left) return task;
  for (task = tasks; task; task = task->next)
    if (task->left && task->pid > 0 && (task->pid == process->session || task->pid == process->group)) return task;
  return NULL;
}

static struct task *owner_by_token(pid_t pid, bool *unclear) {
  static const char name[] = "SLIPWAY_TOKEN=";
  char path[32], *text = NULL;
  size_t used = 0, capacity = 0;
  snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t size = 1; fd >= 0 && size > 0 && used < MAX_FRAME; used += size > 0 ? (size_t)size : 0) {
    if (capacity - used < CHUNK) text = grow(text, capacity = capacity * 2 + CHUNK + 1);
    size = read(fd, text + used, capacity - used - 1);
  }
  if (fd >= 0) close(fd);
  *unclear = used == 0;
  struct task *owner = NULL;
  if (used) text[used] = 0;
  for (size_t at = 0; at < used && !owner; at += strlen(text + at) + 1) {
    if (strncmp(text + at, name, sizeof name - 1) != 0) continue;
    for (owner = tasks; owner; owner = owner->next)
      if (strcmp(owner->token, text + at + sizeof name - 1) == 0) break;
    break;
  }
  free(text);
  return owner;
}

static void meet(pid_t pid) {
  struct orphan *orphan = find_orphan(pid);
  if (orphan && (orphan->owner || !orphan->unclear)) return;
  struct process process;
  if (!read_process(pid, &process) || is_dead(&process)) return; /* about to be reaped */
  if (!orphan) {
    orphan = grow(NULL, sizeof *orphan);
    *orphan = (struct orphan){.next = orphans[(unsigned)pid % BUCKETS], .pid = pid, .seq = last_seq};
    orphans[(unsigned)pid % BUCKETS] = orphan;
    orphan_count++;
    for (size_t i = 0; i < doomed_count; i++)
      if (doomed[i].pid == pid) {
        orphan->owner = doomed[i].owner;
        orphan->killed = true;
        return;
      }
  }
  orphan->owner = owner_by_session(&process);
  if (!orphan->owner) orphan->owner = owner_by_token(pid, &orphan->unclear);
}

static bool is_remover(pid_t pid) {
  for (struct task *task = tasks; task; task = task->next)
    if (task->remover == pid) return true;
  return false;
}

static void visit(pid_t pid) {
  if (task_by_pid(pid) || is_remover(pid)) return;
  strangers++;
  meet(pid);
}

/* Finds every orphan. Children stay listed until we reap them and new ones come last, so none is missed. */
void sweep_scan(void) {
  char text[4096];
  off_t offset = 0;
  pid_t pid = 0;
  strangers = 0;
  if (children_fd < 0) {
    size_t count;
    struct process *list = read_processes(&count);
    for (size_t i = 0; i < count; i++)
      if (list[i].parent == self) visit(list[i].pid);
    return;
  }
  for (ssize_t size; (size = pread(children_fd, text, sizeof text, offset)) > 0; offset += size) {
    for (ssize_t i = 0; i < size; i++) {
      if (isdigit((unsigned char)text[i])) {
        pid = pid * 10 + (text[i] - '0');
      } else if (pid) {
        visit(pid);
        pid = 0;
      }
    }
    if ((size_t)size < sizeof text / 2) break; /* the kernel fills as much as it can: this was the end */
  }
}

/* Nothing is left of any task whose main process was reaped before the latest scan: it would be a child of ours or below
   one, and each of our children is the main process of a task that runs. */
bool sweep_alone(void) { return strangers == 0; }

/* The task of a process that has ended and is not reaped yet, or NULL; its environment is gone by now. */
struct task *sweep_owner(pid_t pid) {
  struct orphan *orphan = find_orphan(pid);
  struct process process;
  if (orphan) return orphan->owner;
  return read_process(pid, &process) ? owner_by_session(&process) : NULL;
}

void sweep_reaped(pid_t pid) {
  for (struct orphan **link = &orphans[(unsigned)pid % BUCKETS]; *link; link = &(*link)->next) {
    struct orphan *orphan = *link;
    if (orphan->pid != pid) continue;
    *link = orphan->next;
    orphan_count--;
    free(orphan);
    return;
  }
}

void sweep_forget(const struct task *task) {
  for (unsigned i = 0; orphan_count && i < BUCKETS; i++)
    for (struct orphan *orphan = orphans[i]; orphan; orphan = orphan->next)
      if (orphan->owner == task) orphan->owner = NULL;
  size_t kept = 0;
  for (size_t i = 0; i < doomed_count; i++)
    if (doomed[i].owner != task) doomed[kept++] = doomed[i];
  doomed_count = kept;
}

/* Nothing is left that belongs to this task, or that may belong to it and can be killed by now. */
bool sweep_clear(const struct task *task) {
  for (unsigned i = 0; orphan_count && i < BUCKETS; i++)
    for (struct orphan *orphan = orphans[i]; orphan; orphan = orphan->next) {
      if (orphan->immortal) continue;
      if (orphan->owner == task || (!orphan->owner && orphan->killed && orphan->seq >= task->seq)) return false;
    }
  return true;
}

/* The task whose end makes this orphan's end due now, or NULL. */
static struct task *due_to(const struct orphan *orphan, int64_t now) {
  struct task *task = orphan->owner, *last = NULL;
  if (task) return task->left && (!task->ending || now >= task->deadline) ? task : NULL;
  for (task = tasks; task && task->seq <= orphan->seq; task = task->next) {
    if (!task->left || (task->ending && now < task->deadline)) return NULL;
    last = task;
  }
  return last;
}

/* KILLs orphans whose task has ended, each with everything below it, so that little is left to become ours. */
void sweep_kill(void) {
  int64_t now = now_ms();
  bool due = false;
  for (unsigned i = 0; orphan_count && i < BUCKETS; i++)
    for (struct orphan *orphan = orphans[i]; orphan; orphan = orphan->next)
      due |= !orphan->killed && !orphan->immortal && due_to(orphan, now);
  if (!due) return;
  size_t count;
  struct process *list = read_processes(&count);
  for (size_t i = 0; i < count; i++) {
    pid_t root = root_of(list, count, &list[i]);
    struct orphan *orphan = root && !task_by_pid(root) ? find_orphan(root) : NULL;
    struct task *task = orphan && !orphan->killed && !orphan->immortal ? due_to(orphan, now) : NULL;
    if (!task) continue;
    if (list[i].group == task->pid) kill(-task->pid, SIGKILL); /* held by list[i], so still the task's; atomic */
    if (list[i].pid == root) continue;
    if (kill(list[i].pid, SIGKILL) < 0 || is_dead(&list[i])) continue;
    task->strays++;
    doomed = grow(doomed, (doomed_count + 1) * sizeof *doomed);
    doomed[doomed_count].pid = list[i].pid;
    doomed[doomed_count++].owner = task;
  }
  for (unsigned i = 0; i < BUCKETS; i++)
    for (struct orphan *orphan = orphans[i]; orphan; orphan = orphan->next) {
      struct task *task = orphan->killed || orphan->immortal ? NULL : due_to(orphan, now);
      if (!task) continue;
      if (kill(orphan->pid, SIGKILL) == 0) {
        task->strays++;
        orphan->killed = true;
      } else {
        orphan->immortal = true;
      }
    }
}

/* TERM to the group of every task that must end, and to whatever it started outside of its group; CONT wakes the
   stopped. The whole process table is read once for all of them. */
void sweep_term(void) {
  bool due = false;
  for (struct task *task = tasks; task; task = task->next) due |= task->term_due;
  if (!due) return;
  sweep_scan();
  size_t count;
  struct process *list = read_processes(&count);
  reap(); /* reading took a while: what is over by itself since then is not ended by us */
  for (struct task *task = tasks; task; task = task->next) {
    if (!task->term_due || task->left) continue;
    kill(-task->pid, SIGTERM);
    kill(-task->pid, SIGCONT);
  }
  for (size_t i = 0; i < count; i++) {
    pid_t root = root_of(list, count, &list[i]);
    struct task *task = root ? task_by_pid(root) : NULL;
    struct orphan *orphan = root && !task ? find_orphan(root) : NULL;
    if (orphan) task = orphan->owner;
    if (!task || !task->term_due || list[i].group == task->pid) continue;
    kill(list[i].pid, SIGTERM);
    kill(list[i].pid, SIGCONT);
  }
  for (struct task *task = tasks; task; task = task->next) task->term_due = false;
}
