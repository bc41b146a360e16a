/* Environments: a base is defined once and shared by many tasks; each task overrides some of it. All lookups hash. */
#include "spawner.h"

#include <stdlib.h>
#include <string.h>

struct env {
  struct env *next;
  uint32_t id;
  size_t count;
  char **entries; /* "K=V"; the last definition of a key wins */
  char *block;
  uint32_t *table; /* index into entries + 1, open addressing */
  size_t mask;
};

static struct env *environments;

static size_t key_length(const char *entry) {
  const char *equals = strchr(entry, '=');
  return equals ? (size_t)(equals - entry) : strlen(entry);
}

/* The slot of a key: either empty or holding an entry with the same key. */
static uint32_t *slot_of(uint32_t *table, size_t mask, char *const *entries, const char *entry) {
  size_t length = key_length(entry);
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)entry[i]) * 16777619u;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    if (table[at] == 0) return &table[at];
    const char *found = entries[table[at] - 1];
    if (strncmp(found, entry, length) == 0 && (found[length] == '=' || found[length] == 0)) return &table[at];
  }
}

static size_t mask_for(size_t count) {
  size_t size = 16;
  while (size < count * 2) size *= 2;
  return size - 1;
}

struct env *env_find(uint32_t id) {
  for (struct env *env = environments; env; env = env->next)
    if (env->id == id) return env;
  return NULL;
}

void env_drop(uint32_t id) {
  for (struct env **link = &environments; *link; link = &(*link)->next) {
    struct env *env = *link;
    if (env->id != id) continue;
    *link = env->next;
    free(env->entries);
    free(env->table);
    free(env->block);
    free(env);
    return;
  }
}

bool env_define(uint32_t id, struct cursor *body) {
  uint32_t count = get_u32(body);
  size_t size = (size_t)(body->end - body->at);
  if (body->bad || count > size / 5) return false; /* every entry takes a length and a NUL */
  env_drop(id);
  struct env *env = grow(NULL, sizeof *env);
  env->id = id;
  env->count = 0;
  env->block = grow(NULL, size + 1);
  memcpy(env->block, body->at, size);
  env->entries = grow(NULL, (count + 1) * sizeof *env->entries);
  env->mask = mask_for(count);
  env->table = calloc(env->mask + 1, sizeof *env->table);
  if (!env->table) abort();
  env->next = environments;
  environments = env;
  struct cursor copy = {(uint8_t *)env->block, (uint8_t *)env->block + size, false};
  for (uint32_t i = 0; i < count; i++) {
    char *entry = get_text(&copy);
    if (!entry) return false;
    uint32_t *slot = slot_of(env->table, env->mask, env->entries, entry);
    if (*slot == 0) *slot = (uint32_t)++env->count;
    env->entries[*slot - 1] = entry;
  }
  body->at = body->end;
  return copy.at == copy.end;
}

/* The array for execve, valid until the next call, and the value of PATH in it (or NULL). */
char **env_merge(const struct env *base, char **extra, size_t count, const char **path) {
  static char **merged;
  static uint32_t *table;
  static size_t capacity, table_size;
  size_t length = base->count, mask = mask_for(count);
  if (capacity < length + count + 1) merged = grow(merged, (capacity = length + count + 1) * sizeof *merged);
  if (table_size < mask + 1) table = grow(table, (table_size = mask + 1) * sizeof *table);
  memset(table, 0, (mask + 1) * sizeof *table);
  memcpy(merged, base->entries, length * sizeof *merged);
  for (size_t i = 0; i < count; i++) {
    uint32_t *slot = slot_of(base->table, base->mask, base->entries, extra[i]);
    if (*slot == 0) {
      slot = slot_of(table, mask, merged, extra[i]);
      if (*slot == 0) *slot = (uint32_t)++length;
    }
    merged[*slot - 1] = extra[i];
  }
  merged[length] = NULL;
  uint32_t *slot = slot_of(base->table, base->mask, base->entries, "PATH");
  if (*slot == 0) slot = slot_of(table, mask, merged, "PATH");
  const char *entry = *slot ? merged[*slot - 1] : NULL;
  *path = entry && strncmp(entry, "PATH=", 5) == 0 ? entry + 5 : NULL;
  return merged;
}
