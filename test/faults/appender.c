// A task that leaves a trace: appends "run.task attempt token" to a file of its own, fsynced before anything else
// happens, then works for a while and succeeds or fails as it is told.
//   appender DIRECTORY MILLISECONDS EVERY TIMES
// Every EVERY-th task (by its number, 0: none) exits with 7 in its attempts 1..TIMES.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *need(const char *name) {
  const char *value = getenv(name);
  if (value == NULL) {
    fprintf(stderr, "appender: %s is not set\n", name);
    exit(9);
  }
  return value;
}

int main(int argc, char **argv) {
  if (argc != 5) return 9;
  const char *run = need("SLIPWAY_RUN"), *task = need("SLIPWAY_TASK");
  const char *attempt = need("SLIPWAY_ATTEMPT"), *token = need("SLIPWAY_TOKEN");
  char path[4096], line[512];
  snprintf(path, sizeof path, "%s/%s.%s", argv[1], run, task);
  int length = snprintf(line, sizeof line, "%s.%s %s %s\n", run, task, attempt, token);
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (fd < 0 || write(fd, line, (size_t)length) != length || fsync(fd) != 0) {
    perror(path);
    return 9;
  }
  close(fd);
  long ms = atol(argv[2]);
  if (ms > 0) {
    struct timespec pause = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&pause, NULL);
  }
  int every = atoi(argv[3]);
  return every > 0 && atoi(task) % every == 0 && atoi(attempt) <= atoi(argv[4]) ? 7 : 0;
}
