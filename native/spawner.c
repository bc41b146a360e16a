/* The loop of slipway-spawner; spawner.h says what the program promises. */
#include "spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUCKETS 4096u
#define YOUNG_MS 4    /* a task that ends sooner than this is reported in one piece, its pipes never watched */
#define GATHER_MS 20  /* while successors wait here, the agent need not hear of each end at once */
#define RETRY_MS 5    /* how often to check what gives no event */
#define STALL_MS 10000 /* while stopping: how long the agent may leave our events unread */

enum { ON_OUT = 1, ON_TASKS, ON_IN, ON_SIGNAL };

struct task *tasks, *tasks_last;
unsigned tasks_left;
bool stopping;
uint64_t last_seq;

static struct task *by_id[BUCKETS], *by_pid[BUCKETS];
static struct task *youngest_known; /* the first task in the list that is not announced */
static int epoll, in_fd, exit_status;
static bool gathering;
static int64_t flushed;

int64_t now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static double in_ms(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* The wall clock at the first call plus the time since then: a clock step makes no task longer or shorter. */
double epoch_ms(void) {
  static double start;
  double now = in_ms(CLOCK_MONOTONIC);
  if (start == 0) start = in_ms(CLOCK_REALTIME) - now;
  return start + now;
}

void *grow(void *block, size_t size) {
  block = realloc(block, size ? size : 1);
  if (block) return block;
  static const char text[] = "slipway-spawner: out of memory\n";
  ssize_t written = write(2, text, sizeof text - 1);
  (void)written;
  _exit(3);
}

void close_from(int first) {
  DIR *dir = opendir("/proc/self/fd");
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    int fd = atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd >= first && fd != dirfd(dir)) close(fd);
  }
  if (dir) closedir(dir);
}

struct task *task_by_id(uint32_t id) {
  struct task *task = by_id[id % BUCKETS];
  while (task && task->id != id) task = task->id_next;
  return task;
}

struct task *task_by_pid(pid_t pid) {
  struct task *task = by_pid[(unsigned)pid % BUCKETS];
  while (task && task->pid != pid) task = task->pid_next;
  return task;
}

void task_add(struct task *task) {
  task->seq = ++last_seq;
  task->prev = tasks_last;
  *(tasks_last ? &tasks_last->next : &tasks) = task;
  tasks_last = task;
  if (!youngest_known) youngest_known = task;
  task->id_next = by_id[task->id % BUCKETS];
  by_id[task->id % BUCKETS] = task;
  if (task->pid <= 0) return;
  task->pid_next = by_pid[(unsigned)task->pid % BUCKETS];
  by_pid[(unsigned)task->pid % BUCKETS] = task;
}

/* A reaped pid may be given to another process at once. */
void task_forget_pid(struct task *task) {
  struct task **link = &by_pid[(unsigned)task->pid % BUCKETS];
  while (*link && *link != task) link = &(*link)->pid_next;
  if (*link) *link = task->pid_next;
}

void task_free(struct task *task) {
  struct task **link = &by_id[task->id % BUCKETS];
  while (*link != task) link = &(*link)->id_next;
  *link = task->id_next;
  if (youngest_known == task) youngest_known = task->next;
  *(task->prev ? &task->prev->next : &tasks) = task->next;
  *(task->next ? &task->next->prev : &tasks_last) = task->prev;
  tasks_left--;
  free(task->token);
  free(task->cgroup);
  free(task);
}

/* TERM now (with the others of this turn), KILL after the grace; asking again can only make it sooner. */
void task_end(struct task *task, uint32_t grace) {
  int64_t deadline = now_ms() + (grace == NONE ? task->grace : grace);
  if (!task->ending || deadline < task->deadline) task->deadline = deadline;
  if (task->ending || task->left) return;
  task->ending = task->term_due = true;
}

void stop_all(void) {
  if (stopping) return;
  stopping = true;
  epoll_ctl(epoll, EPOLL_CTL_DEL, in_fd, NULL);
  successors_clear();
  for (struct task *task = tasks; task; task = task->next) task_end(task, NONE);
}

void protocol_error(const char *what) {
  fprintf(stderr, "slipway-spawner: protocol error: %s\n", what);
  exit_status = 2;
  stop_all();
}

static void request(uint8_t type, struct cursor *body) {
  struct task *task;
  uint32_t id, value;
  switch (type) {
    case REQ_ENV:
      id = get_u32(body);
      if (!env_define(id, body)) protocol_error("malformed environment");
      return;
    case REQ_START:
      if (!successor_request(body)) protocol_error("malformed start, unknown environment or task id in use");
      return;
    case REQ_DROP_ENV:
      id = get_u32(body);
      if (body->bad) break;
      env_drop(id);
      return;
    case REQ_END:
    case REQ_SIGNAL:
      id = get_u32(body);
      value = get_u32(body);
      if (body->bad) break;
      if (type == REQ_END && successor_drop(id)) return;
      if (type == REQ_END) reap(); /* what is over by itself is not ended by us */
      task = task_by_id(id); /* may have ended in the meantime */
      if (!task || task->left) return;
      if (type == REQ_END) task_end(task, value);
      else if (value > 0 && value <= 64) kill(-task->pid, (int)value);
      return;
    default:
      break;
  }
  protocol_error("unknown or short request");
}

/* The next child that has ended, not reaped yet: /proc still shows whose it was. */
static pid_t ended_child(void) {
  siginfo_t info;
  info.si_pid = 0;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ? 0 : info.si_pid;
}

/* What a process used joins what is known of its task: its main process, or orphans of it that we reaped. */
static void add_usage(struct rusage *sum, const struct rusage *more) {
  if (sum->ru_maxrss < more->ru_maxrss) sum->ru_maxrss = more->ru_maxrss;
  timeradd(&sum->ru_utime, &more->ru_utime, &sum->ru_utime);
  timeradd(&sum->ru_stime, &more->ru_stime, &sum->ru_stime);
  sum->ru_inblock += more->ru_inblock;
  sum->ru_oublock += more->ru_oublock;
}

void reap(void) {
  int status;
  struct rusage usage;
  for (pid_t pid; (pid = ended_child()) > 0;) {
    struct task *task = task_by_pid(pid), *owner = task ? NULL : sweep_owner(pid);
    if (wait4(pid, &status, WNOHANG, &usage) != pid) return;
    if (owner) add_usage(&owner->usage, &usage);
    if (task) {
      add_usage(&task->usage, &usage);
      task->ended = epoch_ms();
      task->status = status;
      task->left = true;
      if (task->term_due) task->ending = task->term_due = false; /* it was over before it got the signal */
      tasks_left++;
      task_forget_pid(task);
      continue;
    }
    for (task = tasks; tasks_left && task; task = task->next)
      if (task->remover == pid) {
        task->remover = 0;
        tmpdir_gone(task->place);
        task->place = NULL;
        break;
      }
    if (!task || !tasks_left) sweep_reaped(pid);
  }
}

static void announce(int64_t now) {
  while (youngest_known && (youngest_known->left || now - youngest_known->born >= YOUNG_MS)) {
    struct task *task = youngest_known;
    if (!task->left && task->stage == STAGE_NONE) {
      send_started(task);
      wire_watch_outputs(task);
      task->announced = true;
      wire_hurry();
    }
    youngest_known = task->next;
  }
}

static void kill_overdue(int64_t now) {
  for (struct task *task = tasks; task; task = task->next) {
    if (!task->ending || task->left || task->killed || now < task->deadline) continue;
    kill(-task->pid, SIGKILL); /* not reaped, so the pid and the group are still its own */
    task->killed = true;
  }
}

static int next_timeout(int64_t now) {
  int64_t wait = settle_waits() ? RETRY_MS : INT64_MAX;
  if (youngest_known && youngest_known->born + YOUNG_MS - now < wait) wait = youngest_known->born + YOUNG_MS - now;
  for (struct task *task = tasks; task; task = task->next)
    if (task->ending && now < task->deadline && task->deadline - now < wait) wait = task->deadline - now;
  if (stopping && wire_queued() && wait > 100) wait = 100;
  if (gathering && flushed + GATHER_MS - now < wait) wait = flushed + GATHER_MS - now;
  if (tmpdir_due() != INT64_MAX && tmpdir_due() - now < wait) wait = tmpdir_due() - now;
  if (wait == INT64_MAX) return -1;
  return wait < 0 ? 0 : wait > INT32_MAX ? INT32_MAX : (int)wait;
}

static void take_signals(int fd) {
  struct signalfd_siginfo info[8];
  ssize_t size = read(fd, info, sizeof info);
  for (ssize_t i = 0; i < size / (ssize_t)sizeof *info; i++) {
    if (info[i].ssi_signo == SIGCHLD) continue;
    for (struct task *task = tasks; stopping && task; task = task->next) task_end(task, 0); /* asked twice: at once */
    stop_all();
  }
  reap();
}

static void loop(int signals) {
  struct epoll_event events[8];
  for (;;) {
    int count = epoll_wait(epoll, events, 8, next_timeout(now_ms()));
    for (int i = 0; i < count; i++) {
      switch (events[i].data.u64) {
        case ON_SIGNAL: take_signals(signals); break;
        case ON_OUT: wire_out_ready(events[i].events & (EPOLLERR | EPOLLHUP)); break;
        case ON_TASKS: wire_outputs(); break;
        case ON_IN:
          if (!stopping && !wire_read(request)) stop_all();
          break;
      }
    }
    int64_t now = now_ms();
    sweep_term();
    kill_overdue(now);
    settle();
    tmpdir_tidy(now);
    announce(now);
    gathering = !stopping && !successors_wanted() && wire_queued() < CHUNK && now - flushed < GATHER_MS;
    if (!gathering) {
      wire_flush(true);
      flushed = now;
    }
    if (!stopping) continue;
    if (wire_queued() && now - wire_progress() > STALL_MS) wire_abandon();
    if (!tasks && !wire_queued()) return;
  }
}

/* Descriptors 0, 1 and 2 exist and are harmless (a task may name /dev/stdout as its output); the agent's pipes are
   moved away; everything else that was inherited is closed; every later descriptor is close-on-exec. */
static void arrange_descriptors(int *in, int *out) {
  int null;
  while ((null = open("/dev/null", O_RDWR)) >= 0 && null <= 2) continue;
  close_from(3);
  *in = fcntl(0, F_DUPFD_CLOEXEC, 3);
  *out = fcntl(1, F_DUPFD_CLOEXEC, 3);
  null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, 0);
  dup2(null, 1);
  close(null);
}

/* Tasks start with default dispositions because we have none but the defaults: what was ignored is reset here, and
   SIGPIPE is blocked instead of ignored (each task's mask is emptied). */
static int arrange_signals(void) {
  sigset_t mask;
  for (int number = 1; number <= 64; number++) signal(number, SIG_DFL);
  sigemptyset(&mask);
  sigaddset(&mask, SIGPIPE);
  sigaddset(&mask, SIGCHLD);
  sigaddset(&mask, SIGTERM);
  sigaddset(&mask, SIGINT);
  sigaddset(&mask, SIGHUP);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  sigdelset(&mask, SIGPIPE);
  return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(void) {
  int out;
  const uint16_t probe = 1;
  arrange_descriptors(&in_fd, &out);
  int signals = arrange_signals();
  epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event on_in = {.events = EPOLLIN, .data.u64 = ON_IN}, on_signal = {.events = EPOLLIN, .data.u64 = ON_SIGNAL};
  if (*(const uint8_t *)&probe != 1 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || signals < 0 || epoll < 0 ||
      epoll_ctl(epoll, EPOLL_CTL_ADD, in_fd, &on_in) < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, signals, &on_signal) < 0) {
    fprintf(stderr, "slipway-spawner: cannot run here: %s\n", strerror(errno));
    return 2;
  }
  wire_open(epoll, in_fd, out);
  start_init();
  sweep_init();
  send_hello();
  wire_flush(false);
  if (!stopping) loop(signals); /* the agent may have died before our first word: nothing would wake the loop */
  return exit_status;
}
