// LD_PRELOAD: fdatasync and fsync of files whose path contains $SHIM_PATH fail with EIO while $SHIM_FLAG exists; each
// failure removes the flag, so that one flag is one failure.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int fd) {
  const char *part = getenv("SHIM_PATH"), *flag = getenv("SHIM_FLAG");
  if (part == NULL || flag == NULL) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strstr(path, part) != NULL && unlink(flag) == 0;
}

int fdatasync(int fd) {
  static int (*next)(int);
  if (next == NULL) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  if (!fails(fd)) return next(fd);
  errno = EIO;
  return -1;
}

int fsync(int fd) {
  static int (*next)(int);
  if (next == NULL) next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  if (!fails(fd)) return next(fd);
  errno = EIO;
  return -1;
}
