/*
 * Starting a task: TMPDIR, output, then one vfork. While the child prepares itself it runs in our memory and we are
 * suspended, so it only makes system calls on data prepared before, and writes nothing but plan->stage and error.
 */
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct plan {
  const char *cwd, *path;
  char **argv, **shell, **envp; /* shell: room for /bin/sh, the script, and argv[1…] */
  char *candidate;              /* room for the longest element of path, '/', argv[0] */
  size_t argc;
  int out, err, cgroup, mode;
  const unsigned long *cpus;
  size_t cpus_size;
  volatile int stage, error;
};

static int dev_null;

void start_init(void) { dev_null = open("/dev/null", O_RDONLY | O_CLOEXEC); }

static int execute(struct plan *plan, char *file) {
  execve(file, plan->argv, plan->envp);
  if (errno != ENOEXEC) return errno;
  plan->shell[0] = (char *)(uintptr_t) "/bin/sh"; /* a script without #!, as execvp does */
  plan->shell[1] = file;
  memcpy(plan->shell + 2, plan->argv + 1, plan->argc * sizeof *plan->argv); /* with the NULL */
  execve("/bin/sh", plan->shell, plan->envp);
  return errno;
}

/* Searches as shells do: in the task's own PATH, with relative elements counting from its cwd; what we cannot see there
   does not exist. execvpe would say EACCES for any directory that we may not enter. Missing files are not worth an
   execve either, which would copy the whole environment only to say so. */
static int search(struct plan *plan) {
  char *file = plan->argv[0];
  if (strchr(file, '/')) return execute(plan, file);
  if (*file == 0) return ENOENT;
  size_t name = strlen(file) + 1;
  bool denied = false;
  struct stat seen;
  for (const char *element = plan->path;; element++) {
    size_t length = (size_t)(strchrnul(element, ':') - element);
    memcpy(plan->candidate, element, length);
    plan->candidate[length] = '/';
    memcpy(plan->candidate + length + (length > 0), file, name); /* an empty element is the cwd */
    element += length;
    if (stat(plan->candidate, &seen) == 0 && S_ISREG(seen.st_mode)) {
      int error = execute(plan, plan->candidate);
      if (error == EACCES) denied = true;
      else if (error != ENOENT && error != ENOTDIR && error != ESTALE && error != ENODEV && error != ETIMEDOUT)
        return error;
    }
    if (*element == 0) return denied ? EACCES : ENOENT;
  }
}

static __attribute__((noinline, noreturn)) void child(struct plan *plan) {
  sigset_t none;
  sigemptyset(&none);
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a spawner killed with -9 takes its tasks' main processes along */
  setsid();
  if (plan->cgroup >= 0 && write(plan->cgroup, "0", 1) < 0) errno = 0; /* optional: the sweep does not need it */
  if (plan->cpus) sched_setaffinity(0, plan->cpus_size, (const cpu_set_t *)plan->cpus);
  if (chdir(plan->cwd) < 0) {
    plan->error = errno;
    plan->stage = STAGE_CWD;
    _exit(126);
  }
  dup2(dev_null, 0);
  dup2(plan->out, 1);
  dup2(plan->err, 2);
  sigprocmask(SIG_SETMASK, &none, NULL); /* dispositions are the defaults already: see main() */
  plan->error = search(plan);
  plan->stage = STAGE_EXEC;
  _exit(127);
}

static __attribute__((noinline)) pid_t launch(struct plan *plan) {
  pid_t pid = vfork();
  if (pid == 0) child(plan);
  return pid;
}

/* Non-blocking while opening, so that a FIFO without a reader is an error and does not block the loop. The mode is
   O_TRUNC, or O_APPEND where several tasks write to one file: the kernel then puts each write at the file's end. */
static int open_output(const char *path, int mode) {
  int fd = open(path, O_WRONLY | O_CREAT | mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
  if (fd >= 0) fcntl(fd, F_SETFL, mode & O_APPEND);
  return fd;
}

/* A pipe whose read end is ours; it is made non-blocking before the first read. */
static int open_pipe(int *ours) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) return -1;
  *ours = ends[0];
  return ends[1];
}

static char *copy(const char *text) {
  if (!text) return NULL;
  size_t size = strlen(text) + 1;
  return memcpy(grow(NULL, size), text, size);
}

static char **get_texts(struct cursor *body, uint32_t *count, char **list, size_t spare) {
  *count = get_u32(body);
  if (body->bad || *count > (size_t)(body->end - body->at) / 5) return body->bad = true, list;
  list = grow(list, (*count + spare) * sizeof *list);
  for (uint32_t i = 0; i < *count; i++) list[i] = get_text(body);
  return list;
}

static const unsigned long *get_cpus(struct cursor *body, size_t *size) {
  static unsigned long mask[MAX_CPUS / 8 / sizeof(unsigned long)];
  const unsigned bits = 8 * sizeof(unsigned long);
  uint32_t count = get_u32(body);
  if (body->bad || count == NONE) return NULL;
  memset(mask, 0, sizeof mask);
  for (*size = sizeof *mask; count > 0; count--) {
    uint32_t cpu = get_u32(body);
    if (body->bad || cpu >= MAX_CPUS) return body->bad = true, NULL;
    mask[cpu / bits] |= 1ul << cpu % bits;
    if (*size < (cpu / bits + 1) * sizeof *mask) *size = (cpu / bits + 1) * sizeof *mask;
  }
  return mask;
}

static bool fails(struct task *task, int stage) {
  task->stage = stage;
  task->error = errno;
  return false;
}

/* Output, the vfork, and everything between. On failure the stage is noted and only TMPDIR may be left. */
static bool begin(struct task *task, struct plan *plan, const char *out, const char *err, const char *cgroup) {
  plan->out = out ? open_output(out, plan->mode) : open_pipe(&task->fd[0]);
  if (plan->out < 0) return fails(task, out ? STAGE_STDOUT : STAGE_FORK);
  bool shared = out && err && strcmp(out, err) == 0;
  plan->err = shared ? plan->out : err ? open_output(err, plan->mode) : open_pipe(&task->fd[1]);
  if (plan->err < 0) {
    fails(task, err ? STAGE_STDERR : STAGE_FORK);
    close(plan->out);
    return false;
  }
  if (cgroup && (task->cgroup = cgroup_make(cgroup, task->token))) {
    char procs[4096];
    snprintf(procs, sizeof procs, "%s/cgroup.procs", task->cgroup);
    plan->cgroup = open(procs, O_WRONLY | O_CLOEXEC);
  }
  task->pid = launch(plan);
  if (task->pid < 0) fails(task, STAGE_FORK);
  else if (plan->stage) task->stage = plan->stage, task->error = plan->error;
  close(plan->out);
  if (!shared) close(plan->err);
  if (plan->cgroup >= 0) close(plan->cgroup);
  return task->pid > 0;
}

/* False when the frame is malformed. A task that cannot start ends at once, with the stage and errno in its exit. */
bool start_task(struct cursor *body) {
  static char **argv, **extra, **shell, *candidate;
  static size_t candidate_size;
  struct plan plan = {.cgroup = -1};
  uint32_t id = get_u32(body), argc = 0, extras = 0;
  struct env *env = env_find(get_u32(body));
  uint32_t grace = get_u32(body);
  get_u32(body); /* whom it waited for: successors.c */
  plan.cwd = get_text(body);
  const char *out = get_optional(body), *err = get_optional(body), *tmpdir = get_optional(body);
  const char *cgroup = get_optional(body), *token = get_text(body);
  argv = get_texts(body, &argc, argv, 1);
  if (body->bad) return false;
  extra = get_texts(body, &extras, extra, 1); /* and TMPDIR */
  if (body->bad) return false;
  plan.cpus = get_cpus(body, &plan.cpus_size);
  uint32_t flags = get_u32(body);
  if (body->bad || body->at != body->end || flags > START_APPEND || argc == 0 || !env || task_by_id(id)) return false;

  plan.mode = flags & START_APPEND ? O_APPEND : O_TRUNC;
  argv[argc] = NULL;
  plan.argv = argv;
  plan.argc = argc;
  plan.shell = shell = grow(shell, ((size_t)argc + 2) * sizeof *shell);
  struct place *place = tmpdir ? tmpdir_take(tmpdir) : NULL;
  int refused = tmpdir && !place ? errno : 0;
  if (place) extra[extras++] = tmpdir_entry(place);
  plan.envp = env_merge(env, extra, extras, &plan.path);
  if (!plan.path) plan.path = "/bin:/usr/bin";
  size_t room = strlen(plan.path) + strlen(argv[0]) + 3;
  if (candidate_size < room) candidate = grow(candidate, candidate_size = room);
  plan.candidate = candidate;

  struct task *task = grow(NULL, sizeof *task);
  memset(task, 0, sizeof *task);
  task->id = id;
  task->grace = grace;
  task->fd[0] = task->fd[1] = -1;
  task->token = copy(token);
  task->place = place;
  task->born = now_ms();
  task->started = task->ended = epoch_ms();
  errno = refused;
  bool begun = refused ? fails(task, STAGE_TMPDIR) : begin(task, &plan, out, err, cgroup);
  task_add(task);
  if (!begun) {
    task->left = true;
    tasks_left++;
  }
  return true;
}
