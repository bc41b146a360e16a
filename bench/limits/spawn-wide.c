/*
 * How many processes a machine with many cores starts and ends per second: posix_spawn of /bin/true, one at a time, in each
 * of WORKERS processes. With a directory, each also makes and removes one per task there: all in that one (`one`), or each
 * worker in a directory of its own (`own`).
 * Usage: spawn-wide COUNT WORKERS [DIRECTORY one|own]. Prints one number, the rate per second.
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int fail(const char *what) {
  perror(what);
  return 1;
}

static int work(long count, const char *directory, int own) {
  char *command[] = {"/bin/true", NULL}, above[4000], path[4096];
  snprintf(above, sizeof above, own ? "%s/%d" : "%s", directory ? directory : "", (int)getpid());
  if (directory && own && mkdir(above, 0700) < 0) return fail(above);
  for (long i = 0; i < count; i++) {
    pid_t pid;
    int status;
    snprintf(path, sizeof path, "%s/%d-%ld", above, (int)getpid(), i);
    if (directory && mkdir(path, 0700) < 0) return fail(path);
    if (posix_spawn(&pid, command[0], NULL, NULL, command, environ) != 0) return fail("posix_spawn");
    if (waitpid(pid, &status, 0) != pid || status != 0) return fail("/bin/true");
    if (directory && rmdir(path) < 0) return fail(path);
  }
  return directory && own && rmdir(above) < 0 ? fail(above) : 0;
}

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 0, workers = argc > 2 ? atol(argv[2]) : 0;
  int own = argc > 4 && strcmp(argv[4], "own") == 0;
  if (count < 1 || workers < 1) return fprintf(stderr, "usage: spawn-wide COUNT WORKERS [DIRECTORY one|own]\n"), 2;
  double begin = seconds();
  for (long i = 0; i < workers; i++) {
    pid_t pid = fork();
    if (pid < 0) return fail("fork");
    if (pid == 0) _exit(work(count / workers + (i < count % workers), argc > 3 ? argv[3] : NULL, own));
  }
  for (int status; wait(&status) > 0;)
    if (status != 0) return 1;
  printf("%.1f\n", (double)count / (seconds() - begin));
  return 0;
}
