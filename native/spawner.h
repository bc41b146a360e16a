/*
 * slipway-spawner: starts tasks for an agent and ends them completely.
 *
 * One single-threaded process, one epoll loop. Requests come in on stdin, events go out on stdout, both as frames
 * (u32 little-endian length, u8 type, body; src/agent/spawner/protocol.ts is the other end). Guarantees:
 *
 *   - the loop never waits for a child: starting is vfork+exec, everything else is driven by SIGCHLD, pipes and timers;
 *   - all output of a task is sent before its exit, and its exit is sent once, after nothing of it runs any more and
 *     its TMPDIR is gone, or empty and nobody's (tmpdir.c);
 *   - at most OUT_HIGH bytes of output wait for the agent; beyond that the tasks' pipes stay full;
 *   - when stdin ends, or on TERM, INT or HUP, every task gets TERM, its grace, KILL; then the program exits.
 *
 * Life of a task:  RUNNING ──main process reaped──► LEFT ──strays gone, cleaned up, output sent──► freed
 *
 *   spawner.c      the loop, timers, stopping      wire.c   frames in, the queue of events out
 *   start.c        one vfork per task              env.c    environments and their overrides
 *   sweep.c        who belongs to which task       settle.c what happens between a main's end and the exit event
 *   successors.c   tasks that wait here for another's end    tree.c   removing a directory
 *   tmpdir.c       the tasks' TMPDIRs
 */
#ifndef SLIPWAY_SPAWNER_H
#define SLIPWAY_SPAWNER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define PROTOCOL_VERSION 6u
#define MAX_FRAME (8u << 20)
#define OUT_HIGH (4u << 20)
#define OUT_LOW (1u << 20)
#define CHUNK (64u << 10)
#define NONE UINT32_MAX
#define MAX_CPUS 65536u

enum { REQ_ENV = 1, REQ_DROP_ENV, REQ_START, REQ_END, REQ_SIGNAL };
enum { START_APPEND = 1 };
enum { EV_HELLO = 64, EV_STARTED, EV_OUTPUT, EV_EXIT };
enum { STAGE_NONE, STAGE_CWD, STAGE_STDOUT, STAGE_STDERR, STAGE_TMPDIR, STAGE_EXEC, STAGE_FORK, STAGE_DROPPED };

struct task {
  struct task *id_next, *pid_next; /* hash chains */
  struct task *prev, *next;        /* all tasks, oldest first */
  uint64_t seq;                    /* grows with every start */
  uint32_t id, grace, strays;
  uint32_t oom_kills; /* processes in its cgroup that the kernel killed for memory */
  pid_t pid, remover; /* main process (also its group and session); helper that removes a large TMPDIR */
  bool left;          /* the main process has been reaped */
  bool announced;     /* `started` was sent and its pipes are watched */
  bool ending, term_due, killed, draining;
  bool doubtful;      /* its cgroup could not be removed: a process may be left */
  int fd[2];       /* read ends of stdout and stderr, or -1 */
  int pending[2];  /* while draining: bytes still to read, so that a stranger holding the pipe cannot delay us */
  int64_t born, deadline, cgroup_since;
  int status, stage, error;
  double started, ended; /* epoch, ms */
  struct rusage usage; /* of its main process and of its orphans that we reaped */
  double cgroup_peak;  /* bytes; 0 unless its cgroup counts memory */
  struct place *place;  /* its TMPDIR; NULL once it is gone or given back */
  char *token, *cgroup; /* cgroup becomes NULL once it is gone */
};

struct cursor {
  const uint8_t *at, *end;
  bool bad;
};

/* spawner.c */
extern struct task *tasks, *tasks_last;
extern unsigned tasks_left; /* how many tasks have `left` set */
extern bool stopping;
extern uint64_t last_seq;
struct task *task_by_id(uint32_t id);
struct task *task_by_pid(pid_t pid);
void task_add(struct task *task);
void task_forget_pid(struct task *task);
void task_free(struct task *task);
void task_end(struct task *task, uint32_t grace);
void reap(void);
void stop_all(void);
void protocol_error(const char *what);
int64_t now_ms(void);
double epoch_ms(void);
void *grow(void *block, size_t size);
void close_from(int first);

/* wire.c */
extern bool out_broken, out_paused;
void wire_open(int epoll, int in, int out);
void wire_watch_outputs(struct task *task);
void wire_close_output(struct task *task, int which);
void wire_outputs(void);
void wire_out_ready(bool gone);
ssize_t wire_pump(struct task *task, int which, size_t limit);
bool wire_read(void (*request)(uint8_t type, struct cursor *body));
void wire_hurry(void);
void wire_flush(bool urgent_only);
void wire_abandon(void);
size_t wire_queued(void);
int64_t wire_progress(void);
void send_hello(void);
void send_started(const struct task *task);
void send_exit(const struct task *task);
uint32_t get_u32(struct cursor *cursor);
char *get_text(struct cursor *cursor);
char *get_optional(struct cursor *cursor);

/* env.c */
struct env;
bool env_define(uint32_t id, struct cursor *body);
void env_drop(uint32_t id);
struct env *env_find(uint32_t id);
char **env_merge(const struct env *base, char **extra, size_t count, const char **path);

/* start.c */
void start_init(void);
bool start_task(struct cursor *body);

/* successors.c */
void send_dropped(uint32_t id);
bool successor_request(struct cursor *body);
void successor_next(uint32_t ended);
bool successor_drop(uint32_t id);
void successors_clear(void);
bool successors_wanted(void);

/* sweep.c */
void sweep_init(void);
void sweep_reaped(pid_t pid);
struct task *sweep_owner(pid_t pid);
void sweep_scan(void);
bool sweep_alone(void);
void sweep_forget(const struct task *task);
bool sweep_clear(const struct task *task);
void sweep_kill(void);
void sweep_term(void);

/* settle.c */
void settle(void);
bool settle_waits(void);
char *cgroup_make(const char *parent, const char *token);

/* tmpdir.c */
struct place *tmpdir_take(const char *prefix);
const char *tmpdir_path(const struct place *place);
char *tmpdir_entry(const struct place *place);
bool tmpdir_keep(struct place *place, int64_t now);
void tmpdir_gone(struct place *place);
void tmpdir_tidy(int64_t now);
int64_t tmpdir_due(void);

/* tree.c */
bool tree_remove(const char *path, long budget);

#endif
