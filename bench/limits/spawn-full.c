/*
 * The same with everything a task needs: a private TMPDIR made and removed, a session of its own, stdin from
 * /dev/null, stdout and stderr captured through two pipes read to their end and appended to one file.
 * Usage: spawn-full COUNT CONCURRENCY SCRATCHDIR. Prints one number, the rate per second.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct slot {
  pid_t pid;
  int out, err;
  char tmpdir[4096];
};

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void begin_task(struct slot *slot, const char *scratch, long number) {
  char *command[] = {"/bin/true", NULL};
  int out[2], err[2];
  snprintf(slot->tmpdir, sizeof slot->tmpdir, "%s/task-%d-%ld", scratch, (int)getpid(), number);
  if (mkdir(slot->tmpdir, 0700) < 0) fail(slot->tmpdir);
  if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0) fail("pipe2");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  errno = posix_spawn(&slot->pid, command[0], &actions, &attributes, command, environ);
  if (errno != 0) fail("posix_spawn");
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(out[1]);
  close(err[1]);
  slot->out = out[0];
  slot->err = err[0];
}

static void copy_to_end(int from, int to) {
  char chunk[65536];
  for (ssize_t size; (size = read(from, chunk, sizeof chunk)) != 0;)
    if (size < 0 || write(to, chunk, (size_t)size) != size) fail("copying output");
  close(from);
}

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 0, concurrency = argc > 2 ? atol(argv[2]) : 0;
  if (count < 1 || concurrency < 1 || argc < 4)
    return fprintf(stderr, "usage: spawn-full COUNT CONCURRENCY SCRATCHDIR\n"), 2;
  char log[4096];
  snprintf(log, sizeof log, "%s/output-%d", argv[3], (int)getpid());
  int output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  struct slot *slots = calloc((size_t)concurrency, sizeof *slots);
  if (output < 0 || !slots) fail(log);
  double begin = seconds();
  for (long started = 0, ended = 0; ended < count;) {
    for (long i = 0; i < concurrency && started < count; i++)
      if (slots[i].pid == 0) begin_task(&slots[i], argv[3], started++);
    int status;
    pid_t pid = wait(&status);
    if (pid < 0 || status != 0) return fprintf(stderr, "/bin/true failed\n"), 1;
    for (long i = 0; i < concurrency; i++) {
      if (slots[i].pid != pid) continue;
      copy_to_end(slots[i].out, output);
      copy_to_end(slots[i].err, output);
      if (rmdir(slots[i].tmpdir) < 0) fail(slots[i].tmpdir);
      slots[i].pid = 0;
      ended++;
    }
  }
  double rate = (double)count / (seconds() - begin);
  close(output);
  unlink(log);
  free(slots);
  printf("%.1f\n", rate);
  return 0;
}
