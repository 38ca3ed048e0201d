/* The load of `metrics_per_request`: processes that report metrics as NNI's trial library does, one keep-alive request
 * per value, and measure how long each answer takes.
 *
 *   http_clients run --url URL [--processes N] [--seconds S]
 *       N clients of one URL; prints the report.
 *   http_clients run --urls FILE [--seconds S]
 *       One client for each line "URL [TRIAL_ID [PARAMETER_ID]]"; prints the report.
 *   http_clients create BOARD --processes N [--seconds S]
 *       Prepares a board for clients that something else starts; S is 0 where they end by count.
 *   http_clients trial BOARD
 *       One client, as a trial: URL and id from NNI_TRIAL_COMMAND_CHANNEL and NNI_TRIAL_JOB_ID. It asks for its
 *       parameter first and ends with a FINAL value.
 *   http_clients report BOARD
 *       Prints the report.
 *
 * The board is a file that all clients map. They wait in it until the last one is connected, begin together, send until
 * the same moment, and leave their counts and latencies in it. A request counts when its answer was 200 and complete.
 * Prints one JSON object: requests, errors, seconds, rate (per second), p50_ms, p99_ms, p999_ms, max_ms, processes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/board.h"

enum { text_size = 8192 };

struct target {
  char host[256], port[8], path[1024], trial[64];
  char parameter_id[64];
};

static void die(const char* what, const char* why) {
  fprintf(stderr, "http_clients: %s: %s\n", what, why);
  exit(1);
}

/* ---- HTTP ----------------------------------------------------------------------------------------------------- */

static struct target parse_url(const char* url) {
  struct target to;
  memset(&to, 0, sizeof to);
  strcpy(to.port, "80");
  strcpy(to.parameter_id, "0");
  int used = 0;
  if (sscanf(url, "http://%255[^:/]%n", to.host, &used) != 1) die(url, "is not an http:// URL");
  const char* rest = url + used;
  if (*rest == ':' && sscanf(rest, ":%7[0-9]%n", to.port, &used) == 1) rest += used;
  if (strlen(rest) >= sizeof to.path) die(url, "is too long");
  strcpy(to.path, *rest == '\0' ? "/" : rest);
  const char* last = strrchr(to.path, '/') + 1;
  snprintf(to.trial, sizeof to.trial, "%.63s", *last == '\0' ? "trial" : last);
  return to;
}

static int connect_to(const struct target* to) {
  struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  const int error = getaddrinfo(to->host, to->port, &wanted, &found);
  if (error != 0) die(to->host, gai_strerror(error));
  int link = -1, last_error = 0;
  for (struct addrinfo* at = found; at != NULL && link < 0; at = at->ai_next) {
    link = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (link >= 0 && connect(link, at->ai_addr, at->ai_addrlen) != 0) {
      last_error = errno;
      close(link);
      link = -1;
    }
  }
  freeaddrinfo(found);
  if (link < 0) die(to->host, strerror(last_error));
  const int on = 1;
  setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return link;
}

struct answer {
  int status, closes;
  char* body; /* into the caller's buffer, ends with '\0' */
};

/* Reads one complete answer. @returns 0, or -1 when the peer closed the link or sent something other than HTTP with a
 * length. */
static int read_answer(int link, char* buffer, size_t size, struct answer* got) {
  size_t have = 0;
  char* end = NULL;
  while (end == NULL) {
    const ssize_t n = have + 1 < size ? read(link, buffer + have, size - 1 - have) : -1;
    if (n <= 0) return -1;
    have += (size_t)n;
    buffer[have] = '\0';
    end = strstr(buffer, "\r\n\r\n");
  }
  end[2] = '\0';
  if (sscanf(buffer, "HTTP/1.%*d %d", &got->status) != 1) return -1;
  size_t length = 0;
  got->closes = 0;
  for (char* line = strstr(buffer, "\r\n"); line != NULL && line[2] != '\0'; line = strstr(line + 2, "\r\n")) {
    if (strncasecmp(line + 2, "content-length:", 15) == 0) length = strtoul(line + 17, NULL, 10);
    if (strncasecmp(line + 2, "connection: close", 17) == 0) got->closes = 1;
    if (strncasecmp(line + 2, "transfer-encoding:", 18) == 0) return -1;
  }
  got->body = end + 4;
  const size_t head = (size_t)(got->body - buffer);
  if (head + length >= size) return -1;
  while (have < head + length) {
    const ssize_t n = read(link, buffer + have, head + length - have);
    if (n <= 0) return -1;
    have += (size_t)n;
  }
  got->body[length] = '\0';
  return 0;
}

static int write_all(int link, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = send(link, data, size, MSG_NOSIGNAL);
    if (n <= 0) return -1;
    data += n;
    size -= (size_t)n;
  }
  return 0;
}

/* One exchange; reconnects when the link was closed. @returns the status, or -1. */
static int exchange(const struct target* to, int* link, const char* method, const char* body, struct answer* got,
                    char* buffer) {
  char request[text_size];
  const int size = snprintf(request, sizeof request,
                            "%s %s HTTP/1.1\r\nHost: %s:%s\r\nAccept: */*\r\nConnection: keep-alive\r\n"
                            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                            method, to->path, to->host, to->port, strlen(body), body);
  if (*link < 0) *link = connect_to(to);
  if (write_all(*link, request, (size_t)size) != 0 || read_answer(*link, buffer, text_size, got) != 0) {
    close(*link);
    *link = -1;
    return -1;
  }
  if (got->closes) {
    close(*link);
    *link = -1;
  }
  return got->status;
}

/* ---- clients -------------------------------------------------------------------------------------------------- */

static void metric_body(const struct target* to, const char* type, unsigned long sequence, char* out, size_t size) {
  snprintf(out, size,
           "{\"type\": \"metric\", \"metric\": \"{\\\"parameter_id\\\": %s, \\\"trial_job_id\\\": \\\"%s\\\", "
           "\\\"type\\\": \\\"%s\\\", \\\"sequence\\\": %lu, \\\"value\\\": \\\"0.%04lu\\\"}\"}",
           to->parameter_id, to->trial, type, sequence, sequence % 10000);
}

/* Asks for the trial's parameter and keeps its id, which every metric repeats. */
static void fetch_parameter(struct target* to, int* link, char* buffer) {
  struct answer got;
  if (exchange(to, link, "PUT", "{\"type\": \"request_parameter\"}", &got, buffer) != 200)
    die("request_parameter", "was not answered 200");
  int status;
  while ((status = exchange(to, link, "GET", "", &got, buffer)) == 408) continue;
  if (status != 200) die("parameter", "was not answered 200");
  char* at = strstr(got.body, "parameter_id");
  if (at == NULL) die("parameter", "the answer has no parameter_id");
  at = strchr(at, ':') + 1;
  while (isspace((unsigned char)*at)) ++at;
  size_t length = strcspn(at, ",}");
  if (length >= sizeof to->parameter_id) die("parameter", "its id is too long");
  memcpy(to->parameter_id, at, length);
  to->parameter_id[length] = '\0';
}

static void run_client(struct board* board, struct target to, int as_trial) {
  char body[1024], buffer[text_size];
  struct answer got;
  struct board_client* me = board_join(board);
  int link = connect_to(&to);

  if (as_trial) fetch_parameter(&to, &link, buffer);
  const uint64_t deadline = board_begin(board) + board->run_ns;
  uint64_t from = board_now();
  for (unsigned long sequence = 0; from < deadline; ++sequence) {
    metric_body(&to, "PERIODICAL", sequence, body, sizeof body);
    const int status = exchange(&to, &link, "PUT", body, &got, buffer);
    const uint64_t until = board_now();
    if (status == 200) board_count(me, until - from, 1);
    else if (++me->errors > 1000) break; /* a server that refuses everything would only make this loop spin */
    from = until;
  }
  me->ended_ns = from;
  if (as_trial) {
    metric_body(&to, "FINAL", 0, body, sizeof body);
    if (exchange(&to, &link, "PUT", body, &got, buffer) != 200) ++me->errors;
  }
  if (link >= 0) close(link);
}

/* ---- command line --------------------------------------------------------------------------------------------- */

static struct target* read_targets(const char* path, uint32_t* count) {
  FILE* in = fopen(path, "r");
  if (in == NULL) die(path, strerror(errno));
  struct target* all = NULL;
  char line[2048], url[1536], trial[64], parameter[64];
  for (*count = 0; fgets(line, sizeof line, in) != NULL;) {
    const int words = sscanf(line, "%1535s %63s %63s", url, trial, parameter);
    if (words < 1) continue;
    all = realloc(all, (*count + 1) * sizeof *all);
    if (all == NULL) die(path, strerror(ENOMEM));
    all[*count] = parse_url(url);
    if (words > 1) strcpy(all[*count].trial, trial);
    if (words > 2) strcpy(all[*count].parameter_id, parameter);
    ++*count;
  }
  fclose(in);
  if (*count == 0) die(path, "holds no URL");
  return all;
}

static int run_all(const char* url, const char* urls, uint32_t processes, double seconds) {
  struct target one, *many = NULL;
  if (urls != NULL) many = read_targets(urls, &processes);
  else one = parse_url(url);
  char path[] = "/tmp/http-clients-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) die(path, strerror(errno));
  close(file);
  struct board* board = board_create(path, processes, seconds);
  unlink(path);
  pid_t* children = calloc(processes, sizeof *children);
  if (children == NULL) die("run", strerror(ENOMEM));
  for (uint32_t i = 0; i < processes; ++i) {
    children[i] = fork();
    if (children[i] < 0) die("fork", strerror(errno));
    if (children[i] == 0) {
      run_client(board, many != NULL ? many[i] : one, 0);
      _exit(0);
    }
  }
  int status, failed = 0;
  for (pid_t ended; (ended = wait(&status)) > 0;) {
    for (uint32_t i = 0; i < processes; ++i)
      if (children[i] == ended) children[i] = 0;
    /* A client that cannot connect would leave the others waiting in the board. */
    if (status != 0 && failed++ == 0)
      for (uint32_t i = 0; i < processes; ++i)
        if (children[i] > 0) kill(children[i], SIGTERM);
  }
  free(children);
  free(many);
  if (failed != 0) die("run", "a client could not do its work");
  return board_report(board);
}

static int usage(void) {
  fprintf(stderr, "usage: http_clients run (--url URL [--processes N] | --urls FILE) [--seconds S]\n"
                  "       http_clients create BOARD --processes N [--seconds S]\n"
                  "       http_clients trial BOARD\n"
                  "       http_clients report BOARD\n");
  return 2;
}

int main(int argc, char** argv) {
  const char *url = NULL, *urls = NULL, *path = NULL;
  uint32_t processes = 100;
  double seconds = 10;
  if (argc < 2) return usage();
  for (int at = 2; at < argc; ++at) {
    if (argv[at][0] != '-') path = argv[at];
    else if (at + 1 == argc) return usage();
    else if (strcmp(argv[at], "--url") == 0) url = argv[++at];
    else if (strcmp(argv[at], "--urls") == 0) urls = argv[++at];
    else if (strcmp(argv[at], "--processes") == 0) processes = (uint32_t)strtoul(argv[++at], NULL, 10);
    else if (strcmp(argv[at], "--seconds") == 0) seconds = strtod(argv[++at], NULL);
    else return usage();
  }
  if (processes == 0 || processes > board_max_clients || seconds < 0) return usage();
  if (strcmp(argv[1], "run") == 0 && (url == NULL) != (urls == NULL)) return run_all(url, urls, processes, seconds);
  if (path == NULL) return usage();
  if (strcmp(argv[1], "create") == 0) return board_create(path, processes, seconds) == NULL;
  if (strcmp(argv[1], "report") == 0) return board_report(board_open(path));
  if (strcmp(argv[1], "trial") == 0) {
    const char *channel = getenv("NNI_TRIAL_COMMAND_CHANNEL"), *trial = getenv("NNI_TRIAL_JOB_ID");
    if (channel == NULL || trial == NULL)
      die("trial", "NNI_TRIAL_COMMAND_CHANNEL and NNI_TRIAL_JOB_ID are not both set");
    struct target to = parse_url(channel);
    snprintf(to.trial, sizeof to.trial, "%s", trial);
    run_client(board_open(path), to, 1);
    return 0;
  }
  return usage();
}
