#pragma once
/* Where processes that measure together meet: a file that all of them map. C and C++.
 *
 * They wait in it until the last one is there, begin together, and leave their counts and latencies in it, so that no
 * client has to talk to another while it measures.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Latencies: 32 steps for each power of two nanoseconds, hence at most 3 % wide. */
enum { board_steps = 32, board_buckets = 44 * board_steps, board_max_clients = 10000 };

struct board_client {
  uint64_t requests, errors, max_ns, ended_ns;
  uint32_t latency[board_buckets];
};

struct board {
  uint32_t processes, joined, ready, go;
  uint64_t run_ns, started_ns;
};

static inline void board_die(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static inline uint64_t board_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static inline struct board_client* board_client_at(struct board* board, uint32_t slot) {
  return (struct board_client*)(void*)(board + 1) + slot;
}

static inline size_t board_size(uint32_t processes) {
  return sizeof(struct board) + processes * sizeof(struct board_client);
}

static inline struct board* board_map(int file, size_t size) {
  void* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) board_die("mapping the board", strerror(errno));
  close(file);
  return (struct board*)at;
}

/* @param path     the file; replaced
 * @param seconds  how long the clients send; 0 where they end by count */
static inline struct board* board_create(const char* path, uint32_t processes, double seconds) {
  const int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0 || ftruncate(file, (off_t)board_size(processes)) != 0) board_die(path, strerror(errno));
  struct board* board = board_map(file, board_size(processes));
  board->processes = processes;
  board->run_ns = (uint64_t)(seconds * 1e9);
  return board;
}

static inline struct board* board_open(const char* path) {
  struct stat status;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0 || fstat(file, &status) != 0) board_die(path, strerror(errno));
  if ((size_t)status.st_size < sizeof(struct board)) board_die(path, "is no board");
  struct board* board = board_map(file, (size_t)status.st_size);
  if (board->processes > board_max_clients || board_size(board->processes) != (size_t)status.st_size)
    board_die(path, "is no board");
  return board;
}

/* A place for this client. */
static inline struct board_client* board_join(struct board* board) {
  const uint32_t slot = __atomic_fetch_add(&board->joined, 1, __ATOMIC_RELAXED);
  if (slot >= board->processes) board_die("board", "more clients than it was made for");
  return board_client_at(board, slot);
}

/* Waits until every client of the board is here. @returns the moment at which all begin, for all the same */
static inline uint64_t board_begin(struct board* board) {
  const struct timespec limit = {120, 0};
  if (__atomic_add_fetch(&board->ready, 1, __ATOMIC_ACQ_REL) == board->processes) {
    board->started_ns = board_now();
    __atomic_store_n(&board->go, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &board->go, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  }
  while (__atomic_load_n(&board->go, __ATOMIC_ACQUIRE) == 0)
    if (syscall(SYS_futex, &board->go, FUTEX_WAIT, 0, &limit, NULL, 0) != 0 && errno == ETIMEDOUT)
      board_die("board", "not all clients arrived within 120 s");
  return board->started_ns;
}

static inline unsigned board_bucket(uint64_t ns) {
  if (ns < board_steps) return (unsigned)ns;
  const unsigned power = 63U - (unsigned)__builtin_clzll(ns); /* 5 or more */
  const unsigned at = (power - 4) * board_steps + (unsigned)((ns >> (power - 5)) - board_steps);
  return at < board_buckets ? at : board_buckets - 1;
}

/* Upper edge of a bucket, so that a printed percentile is never better than the measured one. */
static inline uint64_t board_edge(unsigned bucket) {
  if (bucket < board_steps) return bucket;
  return (uint64_t)(bucket % board_steps + board_steps + 1) << (bucket / board_steps - 1);
}

/* One request (or a batch of `count`) that took `ns`. */
static inline void board_count(struct board_client* me, uint64_t ns, uint32_t count) {
  me->requests += count;
  me->latency[board_bucket(ns)] += count;
  if (ns > me->max_ns) me->max_ns = ns;
}

static inline double board_percentile_ms(const uint64_t* counts, uint64_t total, uint64_t max_ns, double part) {
  const uint64_t rank = (uint64_t)(part * (double)total);
  uint64_t seen = 0;
  for (unsigned i = 0; i < board_buckets; ++i) {
    seen += counts[i];
    if (seen > rank) return (double)(board_edge(i) < max_ns ? board_edge(i) : max_ns) * 1e-6;
  }
  return (double)max_ns * 1e-6;
}

/* Prints one JSON object: requests, errors, seconds, rate, p50_ms, p99_ms, p999_ms, max_ms, processes.
 * @returns 0 when there were requests and no errors */
static inline int board_report(struct board* board) {
  static uint64_t latency[board_buckets];
  uint64_t requests = 0, errors = 0, max_ns = 0, ended = 0;
  for (uint32_t i = 0; i < board->processes; ++i) {
    const struct board_client* one = board_client_at(board, i);
    requests += one->requests;
    errors += one->errors;
    if (one->max_ns > max_ns) max_ns = one->max_ns;
    if (one->ended_ns > ended) ended = one->ended_ns;
    for (unsigned b = 0; b < board_buckets; ++b) latency[b] += one->latency[b];
  }
  if (board->started_ns == 0 || ended <= board->started_ns) board_die("report", "the clients have not run");
  const double seconds = (double)(ended - board->started_ns) * 1e-9;
  printf("{\"requests\": %llu, \"errors\": %llu, ", (unsigned long long)requests, (unsigned long long)errors);
  printf("\"seconds\": %.3f, \"rate\": %.1f, ", seconds, (double)requests / seconds);
  printf("\"p50_ms\": %.3f, ", board_percentile_ms(latency, requests, max_ns, 0.5));
  printf("\"p99_ms\": %.3f, ", board_percentile_ms(latency, requests, max_ns, 0.99));
  printf("\"p999_ms\": %.3f, ", board_percentile_ms(latency, requests, max_ns, 0.999));
  printf("\"max_ms\": %.3f, \"processes\": %u}\n", (double)max_ns * 1e-6, board->processes);
  return errors == 0 && requests > 0 ? 0 : 1;
}
