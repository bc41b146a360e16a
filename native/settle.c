/* Between the end of a task's main process and its exit event: strays, cgroup, TMPDIR, the rest of its output. */
#include "spawner.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define INLINE_ENTRIES 64
#define CGROUP_PATIENCE 1000 /* ms that a cgroup may refuse to go before it is left behind */

static bool polling;

/* PARENT/<token with only harmless characters>, or NULL: a cgroup helps, but is never required. */
char *cgroup_make(const char *parent, const char *token) {
  size_t length = strlen(parent), size = length + strlen(token) + 2;
  char *path = grow(NULL, size + 1);
  snprintf(path, size + 1, "%s/%s", parent, *token ? token : "_");
  for (char *at = path + length + 1; *at; at++)
    if (!isalnum((unsigned char)*at) && *at != '-' && *at != '_' && (*at != '.' || at == path + length + 1)) *at = '_';
  if (mkdir(path, 0755) == 0 || errno == EEXIST) return path;
  free(path);
  return NULL;
}

/* What a file of a cgroup says, behind `key` at the beginning of a line; 0 where it is not there, if memory is counted at
   all: memory.peak comes with Linux 5.19. */
static uint64_t cgroup_number(const char *cgroup, const char *name, const char *key) {
  char text[4096];
  snprintf(text, sizeof text, "%s/%s", cgroup, name);
  int fd = open(text, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd >= 0 ? read(fd, text, 512) : 0;
  if (fd >= 0) close(fd);
  if (size <= 0) return 0;
  text[size] = 0;
  for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
    if (strncmp(line, key, strlen(key)) == 0) return strtoull(line + strlen(key), NULL, 10);
  return 0;
}

static void cgroup_kill(const char *cgroup) {
  char file[4096];
  snprintf(file, sizeof file, "%s/cgroup.kill", cgroup);
  int fd = open(file, O_WRONLY | O_CLOEXEC);
  ssize_t written = fd >= 0 ? write(fd, "1", 1) : 0; /* older kernels have no cgroup.kill: the sweep was enough */
  (void)written;
  if (fd >= 0) close(fd);
}

static bool leave_cgroup(struct task *task) {
  if (!task->cgroup) return true;
  bool gone = false;
  if (task->cgroup_since == 0) {
    task->cgroup_since = now_ms();
    task->cgroup_peak = (double)cgroup_number(task->cgroup, "memory.peak", "");
    /* who ended well was not killed, and asking costs as much as the peak */
    if (task->status != 0) task->oom_kills = (uint32_t)cgroup_number(task->cgroup, "memory.events", "oom_kill ");
    gone = rmdir(task->cgroup) == 0;
    if (!gone) cgroup_kill(task->cgroup); /* what can be removed is empty: there is nobody to kill */
  }
  task->doubtful = !gone && rmdir(task->cgroup) < 0;
  if (task->doubtful && errno == EBUSY && now_ms() - task->cgroup_since < CGROUP_PATIENCE) {
    polling = true;
    return false;
  }
  free(task->cgroup);
  task->cgroup = NULL;
  return true;
}

/* Another task may have its TMPDIR if none of its processes is left: we have no children but other tasks' main processes,
   and whatever it started would be one, or be below one; and its cgroup, if it had one, was empty. Otherwise it is
   removed: here if it is small, and in a forked helper if it is large, so that other tasks do not wait for it. */
static bool leave_tmpdir(struct task *task) {
  if (task->remover) return false;
  if (!task->place) return true;
  bool kept = sweep_alone() && !task->doubtful && tmpdir_keep(task->place, now_ms());
  if (!kept && !tree_remove(tmpdir_path(task->place), INLINE_ENTRIES)) {
    task->remover = fork();
    if (task->remover > 0) return false;
    if (task->remover == 0) {
      close_from(0);
      tree_remove(tmpdir_path(task->place), 1L << 40);
      _exit(0);
    }
    task->remover = 0;
    tree_remove(tmpdir_path(task->place), 1L << 40);
  }
  if (!kept) tmpdir_gone(task->place);
  task->place = NULL;
  return true;
}

/* Sends what is in the pipes now: every writer of the task is dead, so this is all there will be. */
static bool drain(struct task *task) {
  for (int i = 0; i < 2 && !task->draining; i++) {
    if (task->fd[i] < 0 || ioctl(task->fd[i], FIONREAD, &task->pending[i]) < 0) task->pending[i] = 0;
    if (task->pending[i] > 0) fcntl(task->fd[i], F_SETFL, O_NONBLOCK);
  }
  task->draining = true;
  for (int i = 0; i < 2; i++) {
    while (task->fd[i] >= 0 && task->pending[i] > 0) {
      if (out_paused) return false;
      ssize_t size = wire_pump(task, i, (size_t)task->pending[i]);
      if (size <= 0) break;
      task->pending[i] -= (int)size;
    }
    wire_close_output(task, i);
  }
  return true;
}

/* Takes every task whose main process has ended as far as it can. Never blocks; called once per turn of the loop. */
void settle(void) {
  polling = false;
  if (!tasks_left) return;
  sweep_scan();
  sweep_kill();
  for (bool again = true; again;) {
    again = false;
    for (struct task *task = tasks, *next; task; task = next) {
      next = task->next;
      if (!task->left || !sweep_clear(task)) continue;
      if (!leave_cgroup(task) || !leave_tmpdir(task) || !drain(task)) continue;
      if (!task->announced && task->stage == STAGE_NONE) send_started(task);
      send_exit(task);
      sweep_forget(task);
      uint32_t id = task->id;
      task_free(task);
      unsigned left = tasks_left;
      successor_next(id);
      again |= tasks_left > left; /* a successor that could not start has already ended, and no event will say so */
    }
  }
}

/* Something has to be retried soon, although no event will say so. */
bool settle_waits(void) { return polling; }
