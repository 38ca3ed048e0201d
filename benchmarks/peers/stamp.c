/* The child of `turn_around`: says when it began and when it ended.
 *
 *   stamp FILE
 *
 * Appends one line "<first> <last>\n" to FILE: CLOCK_MONOTONIC in nanoseconds at the first and at the last instruction
 * of main. Opening the file lies between the two; only the write itself follows the second stamp. One O_APPEND write of
 * a short line is never interleaved with another.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static unsigned long long nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
}

int main(int argc, char** argv) {
  const unsigned long long first = nanoseconds();
  char line[64];
  if (argc != 2) return 2;
  const int file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return 1;
  const int length = snprintf(line, sizeof line, "%llu %llu\n", first, nanoseconds());
  _exit(write(file, line, (size_t)length) == length ? 0 : 1);
}
