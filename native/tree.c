/* Removes a directory tree without ever following a symbolic link, however deep it is, with few descriptors. */
#include "spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEEPEST 40

/* Makes directories readable first if the task made them unreadable: they are its own and about to go. */
static int open_directory(int parent, const char *name) {
  int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int fd = openat(parent, name, flags);
  if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0) fd = openat(parent, name, flags);
  return fd;
}

/* Removes what is inside `fd` (and closes it). A directory below DEEPEST is moved up into `top` and met again there. */
static bool empty_directory(int fd, int top, int depth, long *budget) {
  static unsigned moved;
  DIR *dir = fdopendir(fd);
  if (!dir) return close(fd), false;
  bool progress = true, clean = false, opened = false;
  while (progress && !clean) { /* deleting while reading may skip entries: read again until nothing is left */
    progress = false;
    clean = true;
    rewinddir(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
      const char *name = entry->d_name;
      if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
      clean = false;
      if (--*budget < 0) return closedir(dir), false;
      if (unlinkat(fd, name, 0) == 0) {
        progress = true;
        continue;
      }
      if (errno == EACCES && !opened) {
        opened = true;
        progress = fchmod(fd, 0700) == 0;
        continue;
      }
      if (errno != EISDIR && errno != EPERM) continue;
      if (unlinkat(fd, name, AT_REMOVEDIR) == 0) {
        progress = true;
        continue;
      }
      if (depth >= DEEPEST) {
        char elsewhere[32];
        snprintf(elsewhere, sizeof elsewhere, ".slipway-%u", moved++);
        fchmodat(fd, name, 0700, 0);
        progress |= renameat(fd, name, top, elsewhere) == 0;
        continue;
      }
      int child = open_directory(fd, name);
      if (child < 0) continue;
      bool emptied = empty_directory(child, top, depth + 1, budget);
      if (*budget < 0) return closedir(dir), false;
      if (emptied && unlinkat(fd, name, AT_REMOVEDIR) == 0) progress = true;
    }
  }
  closedir(dir);
  return clean;
}

/* True when the tree is gone; false when it cannot be removed or has more than `budget` entries. */
bool tree_remove(const char *path, long budget) {
  if (rmdir(path) == 0 || errno == ENOENT) return true;
  if (errno == ENOTDIR) return unlink(path) == 0;
  if (errno != ENOTEMPTY && errno != EEXIST) return false;
  int fd = open_directory(AT_FDCWD, path);
  if (fd < 0) return false;
  empty_directory(fd, fd, 0, &budget);
  return rmdir(path) == 0;
}
