// A task that leaves a trace: appends "run.task attempt token" to a file of its own, fsynced before anything else
// happens, then works for a while and succeeds or fails as requested.
//   appender DIRECTORY MILLISECONDS EVERY TIMES [spawner|agent]
// Every EVERY-th task (by its number, 0: none) exits with 7 in its attempts 1..TIMES, or kills its spawner or its
// agent instead.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
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

static int parent_of(int pid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = 0;
  const char *end = strrchr(text, ')');
  int parent = 0;
  return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

// Whether one of its arguments contains this text: a process that has been reparented kills nobody.
static int is_called(int pid, const char *part) {
  char path[64], text[8192];
  snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  return memmem(text, length, part, strlen(part)) != NULL;
}

static void kill_our(const char *whom) {
  int spawner = getppid();
  if (!is_called(spawner, "spawner")) return;
  if (strcmp(whom, "spawner") == 0) {
    kill(spawner, SIGKILL);
    return;
  }
  int agent = parent_of(spawner);
  if (agent > 1 && is_called(agent, "--settings")) kill(agent, SIGKILL);
}

int main(int argc, char **argv) {
  if (argc != 5 && argc != 6) return 9;
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
  if (every == 0 || atoi(task) % every != 0 || atoi(attempt) > atoi(argv[4])) return 0;
  if (argc == 5) return 7;
  kill_our(argv[5]);
  return 0;
}
