/*
 * How many processes this machine starts and ends per second when it does nothing else: posix_spawn of /bin/true.
 * Usage: spawn-bare COUNT CONCURRENCY. Prints one number, the rate per second.
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  long count = argc > 1 ? atol(argv[1]) : 0, concurrency = argc > 2 ? atol(argv[2]) : 0;
  if (count < 1 || concurrency < 1) return fprintf(stderr, "usage: spawn-bare COUNT CONCURRENCY\n"), 2;
  char *command[] = {"/bin/true", NULL};
  double begin = seconds();
  for (long started = 0, ended = 0; ended < count;) {
    while (started < count && started - ended < concurrency) {
      if (posix_spawn(NULL, command[0], NULL, NULL, command, environ) != 0) return perror("posix_spawn"), 1;
      started++;
    }
    int status;
    if (wait(&status) < 0 || status != 0) return fprintf(stderr, "/bin/true failed\n"), 1;
    ended++;
  }
  printf("%.1f\n", (double)count / (seconds() - begin));
  return 0;
}
