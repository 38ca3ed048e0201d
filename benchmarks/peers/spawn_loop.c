/* The floor under `local_trials` and `turn_around`: the least a program can do to run N commands with K of them alive.
 *
 * Per child: one directory, standard output and standard error as files in it, standard input from /dev/null, a process
 * group of its own, posix_spawn, wait. Nothing is recorded, nothing is served. `--bare` leaves out directory and files.
 *
 *   spawn_loop [--count N] [--in-flight K] [--directory DIR | --bare] -- COMMAND [ARGUMENT...]
 *
 * Layout: DIR/environments/local-env/trials/<id>/trial.stdout and trial.stderr, as the keeper makes it. Prints one JSON
 * object:
 *   rate               children per second of wall time, from the first spawn to the last wait
 *   cpu_own_us         CPU of this program per child, microseconds
 *   cpu_children_us    CPU of the children per child, microseconds; what a child does before its exec (opening its
 *                      output files) is counted here
 *   failed             children that did not exit with 0
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static void die(const char* what, int error) {
  fprintf(stderr, "spawn_loop: %s: %s\n", what, strerror(error));
  exit(1);
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double cpu_seconds(int who) {
  struct rusage used;
  getrusage(who, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void make_directory(const char* path) {
  if (mkdir(path, 0777) != 0 && errno != EEXIST) die(path, errno);
}

/* Spreads consecutive numbers over the name space (an odd factor permutes residues of a power of two), so that the file
 * system sees the same order of names as with ids that are not consecutive. */
static void trial_id(unsigned long number, char* out, size_t size) {
  snprintf(out, size, "%07lx", (number * 0x9e3779bUL + 1) & 0xfffffffUL);
}

static void spawn_one(unsigned long number, const char* trials, char** command) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  pid_t child;
  int error;

  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (trials != NULL) {
    char id[32], directory[PATH_MAX], file[PATH_MAX + 32];
    trial_id(number, id, sizeof id);
    if (snprintf(directory, sizeof directory, "%s/%s", trials, id) >= (int)sizeof directory)
      die("directory", ENAMETOOLONG);
    if (mkdir(directory, 0777) != 0) die(directory, errno);
    snprintf(file, sizeof file, "%s/trial.stdout", directory);
    posix_spawn_file_actions_addopen(&actions, 1, file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    snprintf(file, sizeof file, "%s/trial.stderr", directory);
    posix_spawn_file_actions_addopen(&actions, 2, file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  }
  error = posix_spawn(&child, command[0], &actions, &attributes, command, environ);
  if (error != 0) die(command[0], error);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
}

static unsigned long number_argument(const char* name, const char* text) {
  char* end = NULL;
  unsigned long value = text == NULL ? 0 : strtoul(text, &end, 10);
  if (text == NULL || *end != '\0' || value == 0) {
    fprintf(stderr, "spawn_loop: %s wants a number of at least 1, got '%s'\n", name, text == NULL ? "" : text);
    exit(2);
  }
  return value;
}

int main(int argc, char** argv) {
  unsigned long count = 20000, in_flight = 100, started = 0, ended = 0, failed = 0;
  const char* directory = NULL;
  char trials[PATH_MAX];
  int bare = 0, at = 1;

  for (; at < argc && strcmp(argv[at], "--") != 0; ++at) {
    const char* value = at + 1 < argc ? argv[at + 1] : NULL;
    if (strcmp(argv[at], "--bare") == 0) bare = 1;
    else if (strcmp(argv[at], "--count") == 0) count = number_argument("--count", value), ++at;
    else if (strcmp(argv[at], "--in-flight") == 0) in_flight = number_argument("--in-flight", value), ++at;
    else if (strcmp(argv[at], "--directory") == 0 && value != NULL) directory = value, ++at;
    else {
      fprintf(stderr, "spawn_loop: unknown option '%s'\n", argv[at]);
      return 2;
    }
  }
  if (at + 1 >= argc || (directory == NULL) != bare) {
    fprintf(stderr,
            "usage: spawn_loop [--count N] [--in-flight K] (--directory DIR | --bare) -- COMMAND [ARGUMENT...]\n");
    return 2;
  }
  char** command = argv + at + 1;

  if (!bare) {
    char absolute[PATH_MAX];
    make_directory(directory);
    if (realpath(directory, absolute) == NULL) die(directory, errno);
    const char* const below[] = {"/environments", "/local-env", "/trials"};
    strcpy(trials, absolute);
    for (size_t i = 0; i < sizeof below / sizeof *below; ++i) {
      if (strlen(trials) + strlen(below[i]) >= sizeof trials) die(directory, ENAMETOOLONG);
      strcat(trials, below[i]);
      make_directory(trials);
    }
  }

  const double own_before = cpu_seconds(RUSAGE_SELF), from = seconds_now();
  while (ended < count) {
    while (started < count && started - ended < in_flight) spawn_one(started++, bare ? NULL : trials, command);
    int status;
    if (waitpid(-1, &status, 0) < 0) die("waitpid", errno);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed;
    ++ended;
  }
  const double wall = seconds_now() - from;

  printf("{\"count\": %lu, \"seconds\": %.6f, \"rate\": %.1f, ", count, wall, (double)count / wall);
  printf("\"cpu_own_us\": %.2f, ", (cpu_seconds(RUSAGE_SELF) - own_before) * 1e6 / (double)count);
  printf("\"cpu_children_us\": %.2f, \"failed\": %lu}\n", cpu_seconds(RUSAGE_CHILDREN) * 1e6 / (double)count, failed);
  return failed == 0 ? 0 : 1;
}
