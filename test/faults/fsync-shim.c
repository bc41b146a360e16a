// LD_PRELOAD: a disk of our own for the journal and the archive.
//
//   $SHIM_PATH, $SHIM_FLAG  fdatasync and fsync of files whose path contains $SHIM_PATH fail with EIO while $SHIM_FLAG
//                           exists; each failure removes the flag, so that one flag is one failure.
//   $SHIM_HOME, $SHIM_DISK  what is synced below $SHIM_HOME/journal and $SHIM_HOME/runs is copied to the directory
//                           $SHIM_DISK: this is what survives a power loss (power.ts puts it back).
//   $SHIM_SYNC_MS           each of these syncs takes this many milliseconds longer.
//
// On the disk: f.INODE is what was synced of a file, d.INODE the names of a directory as it was synced ("inode name"
// lines), h.INODE a link to a file that lost its name, because the loss of a name is not on the disk before its
// directory is synced; it also keeps the inode's number from being reused.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LARGEST (32L << 20) // anything larger is not a journal of the harness
#define PATH_BYTES 4096
#define NEXT(name) (__typeof__(&name)) dlsym(RTLD_NEXT, #name)

static int is_watched(const char *path) {
  const char *home = getenv("SHIM_HOME");
  if (home == NULL || getenv("SHIM_DISK") == NULL) return 0;
  size_t length = strlen(home);
  if (strncmp(path, home, length) != 0 || path[length] != '/') return 0;
  const char *rest = path + length + 1;
  return strncmp(rest, "journal", 7) == 0 ? rest[7] == 0 || rest[7] == '/'
                                          : strncmp(rest, "runs", 4) == 0 && (rest[4] == 0 || rest[4] == '/');
}

static int path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_BYTES - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return 1;
}

static void on_disk(char *out, char kind, unsigned long inode) {
  snprintf(out, PATH_BYTES, "%s/%c.%lu", getenv("SHIM_DISK"), kind, inode);
}

// Files written at positions: from where on they differ from what was synced. All others are copied whole.
#define KNOWN 1024
static struct {
  unsigned long inode;
  long from;
} known[KNOWN];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void wrote(int fd, long from) {
  if (getenv("SHIM_DISK") == NULL) return;
  int saved = errno;
  struct stat about;
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
    pthread_mutex_lock(&lock);
    unsigned at = (unsigned)(about.st_ino % KNOWN);
    if (known[at].inode == about.st_ino) {
      if (from < known[at].from) known[at].from = from;
    } else {
      known[at].inode = about.st_ino;
      known[at].from = 0;
    }
    pthread_mutex_unlock(&lock);
  }
  errno = saved;
}

static long dirty_from(unsigned long inode) {
  long from = 0;
  pthread_mutex_lock(&lock);
  unsigned at = (unsigned)(inode % KNOWN);
  if (known[at].inode == inode) {
    from = known[at].from;
    known[at].from = LARGEST;
  }
  pthread_mutex_unlock(&lock);
  return from;
}

static void keep_names(const char *path, unsigned long inode) {
  char name[PATH_BYTES], temporary[PATH_BYTES + 32];
  on_disk(name, 'd', inode);
  snprintf(temporary, sizeof temporary, "%s.%d.%lu", name, (int)getpid(), (unsigned long)pthread_self());
  DIR *directory = opendir(path);
  FILE *out = directory == NULL ? NULL : fopen(temporary, "w");
  if (out != NULL) {
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
      if (entry->d_type == DT_REG) fprintf(out, "%lu %s\n", (unsigned long)entry->d_ino, entry->d_name);
    fclose(out);
    (NEXT(rename))(temporary, name);
  }
  if (directory != NULL) closedir(directory);
}

static void keep_bytes(const char *path, unsigned long inode, long size) {
  char name[PATH_BYTES], bytes[65536];
  on_disk(name, 'f', inode);
  int to = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), from = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t (*put)(int, const void *, size_t, off_t) = NEXT(pwrite);
  struct stat kept;
  if (to >= 0 && from >= 0 && fstat(to, &kept) == 0) {
    long at = dirty_from(inode);
    if (at > kept.st_size) at = kept.st_size;
    for (ssize_t got; at < size && (got = pread(from, bytes, sizeof bytes, at)) > 0; at += got)
      if (put(to, bytes, (size_t)got, at) != got) break;
    if (kept.st_size > size) (void)!(NEXT(ftruncate))(to, size);
  }
  if (to >= 0) close(to);
  if (from >= 0) close(from);
}

// What is on the disk when a sync that begins now has succeeded.
static void keep(int fd) {
  char path[PATH_BYTES];
  struct stat about;
  if (!path_of(fd, path) || !is_watched(path) || fstat(fd, &about) != 0) return;
  const char *slow = getenv("SHIM_SYNC_MS");
  if (slow != NULL && atol(slow) > 0) {
    struct timespec pause = {0, atol(slow) * 1000000L};
    nanosleep(&pause, NULL);
  }
  if (S_ISDIR(about.st_mode)) keep_names(path, about.st_ino);
  else if (S_ISREG(about.st_mode) && about.st_size <= LARGEST) keep_bytes(path, about.st_ino, about.st_size);
}

// A name is about to go.
static void hold(const char *path) {
  if (path == NULL || !is_watched(path)) return;
  int saved = errno;
  struct stat about;
  if (lstat(path, &about) == 0 && S_ISREG(about.st_mode)) {
    char name[PATH_BYTES];
    on_disk(name, 'h', about.st_ino);
    (void)!link(path, name);
  }
  errno = saved;
}

static int fails(int fd) {
  const char *part = getenv("SHIM_PATH"), *flag = getenv("SHIM_FLAG");
  char path[PATH_BYTES];
  if (part == NULL || flag == NULL || !path_of(fd, path)) return 0;
  return strstr(path, part) != NULL && (NEXT(unlink))(flag) == 0;
}

static int sync_by(int (*next)(int), int fd) {
  if (fails(fd)) {
    errno = EIO;
    return -1;
  }
  keep(fd);
  return next(fd);
}

int fdatasync(int fd) { return sync_by(NEXT(fdatasync), fd); }

int fsync(int fd) { return sync_by(NEXT(fsync), fd); }

int unlink(const char *path) {
  hold(path);
  return (NEXT(unlink))(path);
}

int unlinkat(int directory, const char *path, int flags) {
  if (flags == 0) hold(path);
  return (NEXT(unlinkat))(directory, path, flags);
}

int rename(const char *from, const char *to) {
  hold(to);
  return (NEXT(rename))(from, to);
}

#define WRITES(name, parameters, arguments)             \
  ssize_t name parameters {                             \
    ssize_t done = (NEXT(name))arguments;               \
    if (done > 0) wrote(fd, (long)at);                  \
    return done;                                        \
  }

WRITES(pwrite, (int fd, const void *bytes, size_t count, off_t at), (fd, bytes, count, at))
WRITES(pwrite64, (int fd, const void *bytes, size_t count, off64_t at), (fd, bytes, count, at))
WRITES(pwritev, (int fd, const struct iovec *pieces, int count, off_t at), (fd, pieces, count, at))
WRITES(pwritev64, (int fd, const struct iovec *pieces, int count, off64_t at), (fd, pieces, count, at))

int ftruncate(int fd, off_t size) {
  int result = (NEXT(ftruncate))(fd, size);
  if (result == 0) wrote(fd, (long)size);
  return result;
}

int ftruncate64(int fd, off64_t size) {
  int result = (NEXT(ftruncate64))(fd, size);
  if (result == 0) wrote(fd, (long)size);
  return result;
}
