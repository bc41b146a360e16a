/*
 * TMPDIRs: PREFIX-<our pid>/<number>. The directory above them is ours alone, so that spawners never wait for each other
 * in the kernel; numbers are not given twice.
 *
 * Making and removing a directory can cost more than the whole task. So one is used again, if nothing of the task before
 * can show in it: the caller has proof that none of its processes is left, and here it is the same inode (held open, so
 * that the number is nobody else's) under the same name, empty, with the same mode, owner, size, flags, project, ACLs and
 * attributes as when it was made. One that differs in anything is removed. Whatever could differ, but for the name, also
 * sets the time of the last change: where that is still from well before the task began, nothing else is looked at.
 *
 *   mkdir ──► in use ──differs, or no proof──► removed
 *               ▲  └──as it was made──► waits ──nobody wanted it for IDLE_MS──► removed
 *               └──────────────────────────┘
 */
#include "spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define IDLE_MS 1000
#define TICK_NS 100000000L /* far more than the time between two ticks of any kernel's clock for files */
#define MOST_HELD 512 /* descriptors of directories that may be used again */

struct parent {
  struct parent *next;
  char *path;
  size_t prefix; /* how much of the path was asked for */
  bool made;     /* seen to be ours and closed to others */
  unsigned used; /* directories in it, in use or waiting */
  int64_t since; /* when the last of them went */
};

/* All that a task could change and the next one could notice. */
struct nature {
  dev_t device;
  ino_t inode;
  mode_t mode;
  uid_t user;
  gid_t group;
  nlink_t links;
  off_t size;
  int flags;
  struct fsxattr project;
  size_t attributes; /* bytes in use */
  char attribute[512]; /* names, then values */
};

struct place {
  struct place *next;
  struct parent *parent;
  char *entry; /* TMPDIR=… */
  int fd;      /* -1: not to be used again */
  int64_t since;
  bool timed;              /* the kernel of this machine sets its times, to the nanosecond */
  struct timespec changed; /* the time of its last change when it was last found as it was made */
  struct timespec taken;   /* when its task got it, by the clock that such times come from */
  struct nature nature;
};

static struct parent *parents;
static struct place *waiting; /* the latest first */
static unsigned held;

static bool read_attributes(int fd, struct nature *nature) {
  char *at = nature->attribute, *end = at + sizeof nature->attribute;
  ssize_t names = flistxattr(fd, at, sizeof nature->attribute);
  if (names < 0) return errno == ENOTSUP;
  at += names;
  for (char *name = nature->attribute; name < nature->attribute + names; name += strlen(name) + 1) {
    ssize_t size = fgetxattr(fd, name, at, (size_t)(end - at));
    if (size < 0 || size == end - at) return false;
    at += size;
  }
  nature->attributes = (size_t)(at - nature->attribute);
  return true;
}

/* False when it cannot be told. A file system without flags has none that could change. */
static bool read_nature(int fd, const struct stat *seen, struct nature *nature) {
  memset(nature, 0, sizeof *nature);
  nature->device = seen->st_dev;
  nature->inode = seen->st_ino;
  nature->mode = seen->st_mode;
  nature->user = seen->st_uid;
  nature->group = seen->st_gid;
  nature->links = seen->st_nlink;
  nature->size = seen->st_size;
  if (ioctl(fd, FS_IOC_GETFLAGS, &nature->flags) < 0) nature->flags = 0;
  if (ioctl(fd, FS_IOC_FSGETXATTR, &nature->project) < 0) memset(&nature->project, 0, sizeof nature->project);
  return read_attributes(fd, nature);
}

static bool is_empty(int fd) {
  char buffer[4096];
  if (lseek(fd, 0, SEEK_SET) < 0) return false;
  for (long size; (size = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) != 0;) {
    if (size < 0) return false;
    for (long at = 0; at < size;) {
      const struct dirent64 *entry = (const struct dirent64 *)(const void *)(buffer + at);
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return false;
      at += entry->d_reclen;
    }
  }
  return true;
}

const char *tmpdir_path(const struct place *place) { return place->entry + sizeof "TMPDIR=" - 1; }
char *tmpdir_entry(const struct place *place) { return place->entry; }

/* The numbers that statfs has for ext2 to ext4, XFS, btrfs and tmpfs. A server elsewhere has a clock of its own. */
static bool keeps_times(int fd) {
  struct statfs system;
  if (fstatfs(fd, &system) < 0) return false;
  switch ((unsigned long)system.f_type & 0xffffffffUL) {
    case 0xEF53UL:
    case 0x58465342UL:
    case 0x9123683EUL:
    case 0x01021994UL: return true;
    default: return false;
  }
}

/* A change since the task began would have another time than this one, which is older by more than a tick. Times in whole
   seconds are those of a file system that has no better ones. */
static bool unchanged(const struct place *place, const struct stat *seen) {
  const struct timespec *was = &place->changed;
  if (!place->timed || was->tv_nsec == 0) return false;
  if (seen->st_ctim.tv_sec != was->tv_sec || seen->st_ctim.tv_nsec != was->tv_nsec) return false;
  int64_t age = (int64_t)(place->taken.tv_sec - was->tv_sec) * 1000000000 + (place->taken.tv_nsec - was->tv_nsec);
  return age > TICK_NS;
}

static bool as_made(struct place *place) {
  struct stat seen;
  struct nature now;
  if (lstat(tmpdir_path(place), &seen) < 0 || seen.st_ino != place->nature.inode || seen.st_dev != place->nature.device)
    return false;
  if (unchanged(place, &seen)) return true;
  if (!read_nature(place->fd, &seen, &now) || memcmp(&now, &place->nature, sizeof now) != 0 || !is_empty(place->fd))
    return false;
  place->changed = seen.st_ctim;
  return true;
}

/* Nobody else could have made a directory of ours that others may not enter. */
static bool make_parent(struct parent *parent) {
  struct stat seen;
  if (mkdir(parent->path, 0700) == 0) return parent->made = true;
  if (errno != EEXIST || lstat(parent->path, &seen) < 0) return false;
  if (S_ISDIR(seen.st_mode) && seen.st_uid == geteuid() && (seen.st_mode & 0777) == 0700) return parent->made = true;
  return errno = EEXIST, false;
}

static struct parent *find_parent(const char *prefix) {
  size_t length = strlen(prefix);
  for (struct parent *parent = parents; parent; parent = parent->next)
    if (parent->prefix == length && memcmp(parent->path, prefix, length) == 0) return parent;
  struct parent *parent = grow(NULL, sizeof *parent);
  parent->prefix = length;
  parent->path = grow(NULL, length + 16);
  parent->used = 0;
  parent->made = false;
  sprintf(parent->path, "%s-%d", prefix, (int)getpid());
  parent->next = parents;
  parents = parent;
  return parent;
}

static void drop_parents(int64_t now) {
  for (struct parent **link = &parents; *link;) {
    struct parent *parent = *link;
    if (parent->used || (!stopping && now - parent->since < IDLE_MS)) {
      link = &parent->next;
      continue;
    }
    *link = parent->next;
    rmdir(parent->path);
    free(parent->path);
    free(parent);
  }
}

/* From here on we know what it looks like new. Without that it is not used again. */
static void remember(struct place *place) {
  struct stat seen;
  if (held >= MOST_HELD) return;
  place->fd = open(tmpdir_path(place), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (place->fd < 0) return;
  held++;
  place->timed = keeps_times(place->fd);
  if (fstat(place->fd, &seen) == 0 && read_nature(place->fd, &seen, &place->nature)) {
    place->changed = seen.st_ctim;
    return;
  }
  close(place->fd);
  place->fd = -1;
  held--;
}

/* An empty directory that only one task has, or NULL with errno. */
struct place *tmpdir_take(const char *prefix) {
  static unsigned long number;
  struct parent *parent = find_parent(prefix);
  for (struct place **link = &waiting; *link; link = &(*link)->next)
    if ((*link)->parent == parent) {
      struct place *place = *link;
      *link = place->next;
      clock_gettime(CLOCK_REALTIME_COARSE, &place->taken);
      return place;
    }
  struct place *place = grow(NULL, sizeof *place);
  place->parent = parent;
  place->timed = false;
  clock_gettime(CLOCK_REALTIME_COARSE, &place->taken);
  place->fd = -1;
  place->entry = grow(NULL, strlen(parent->path) + 40);
  sprintf(place->entry, "TMPDIR=%s/%lu", parent->path, number++);
  bool made = (parent->made || make_parent(parent)) && mkdir(tmpdir_path(place), 0700) == 0;
  /* a task has removed the one above */
  if (!made && parent->made && errno == ENOENT) made = make_parent(parent) && mkdir(tmpdir_path(place), 0700) == 0;
  parent->used++;
  if (made) return remember(place), place;
  int error = errno;
  tmpdir_gone(place);
  errno = error;
  return NULL;
}

/* It is removed, or nothing that we could do about it. */
void tmpdir_gone(struct place *place) {
  if (place->fd >= 0) {
    close(place->fd);
    held--;
  }
  if (--place->parent->used == 0) place->parent->since = now_ms();
  free(place->entry);
  free(place);
}

/* The caller has proof that no process of its task is left. False: it must be removed. */
bool tmpdir_keep(struct place *place, int64_t now) {
  if (place->fd < 0 || stopping || !as_made(place)) return false;
  place->since = now;
  place->next = waiting;
  waiting = place;
  return true;
}

/* Removes what nobody wanted for a while; everything when stopping. */
void tmpdir_tidy(int64_t now) {
  for (struct place **link = &waiting; *link;) {
    struct place *place = *link;
    if (!stopping && now - place->since < IDLE_MS) {
      link = &place->next;
      continue;
    }
    *link = place->next;
    tree_remove(tmpdir_path(place), 1L << 40);
    tmpdir_gone(place);
  }
  drop_parents(now);
}

/* When to tidy, or INT64_MAX. */
int64_t tmpdir_due(void) {
  int64_t due = INT64_MAX;
  for (struct place *place = waiting; place; place = place->next)
    if (place->since + IDLE_MS < due) due = place->since + IDLE_MS;
  for (struct parent *parent = parents; parent; parent = parent->next)
    if (!parent->used && parent->since + IDLE_MS < due) due = parent->since + IDLE_MS;
  return due;
}
