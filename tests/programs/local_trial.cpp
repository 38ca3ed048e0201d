// A trial for tests. Its arguments are carried out one after the other:
//
//   metric VALUE   reports an intermediate value and waits for the answer
//   value NUMBER VALUE  reports an intermediate value under a sequence number, and waits for the answer
//   final VALUE    reports the final value and waits for the answer
//   flood COUNT SIZE  reports intermediate values of so many digits each, one after the other
//   parameters     asks for the parameters and prints the answer
//   tell PATH      opens a FIFO for writing, which returns when somebody reads, and closes it
//   wait PATH      opens a FIFO for reading, which returns when somebody writes
//   print TEXT     writes a line to standard output
//   variable NAME  prints NAME=VALUE, or NAME alone when it is not set
//   directory      prints the working directory
//   child PATH     leaves a child behind that ignores SIGINT, and writes its pid to a file
//   daemon PATH    leaves a process behind without parent, in a session of its own, and writes its pid to a file
//   desert         leaves its process group for the one of its parent
//   defer          does not end by SIGINT from now on, and keeps it for `leave`
//   leave          waits for SIGINT, and goes on
//   ignore         ignores SIGINT from now on
//   stop           waits until a signal ends it
//   exit CODE      ends
//   signal NUMBER  sends itself a signal
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Address {
  std::string host, port, path;
};

Address channel() {
  const char* const url = std::getenv("NNI_TRIAL_COMMAND_CHANNEL");
  Address address;
  const std::string rest = url ? std::string(url).substr(std::strlen("http://")) : "";
  const std::size_t colon = rest.find(':');
  const std::size_t slash = rest.find('/');
  if (colon == std::string::npos || slash == std::string::npos) {
    std::fprintf(stderr, "local_trial: no channel\n");
    std::exit(90);
  }
  address.host = rest.substr(0, colon);
  address.port = rest.substr(colon + 1, slash - colon - 1);
  address.path = rest.substr(slash);
  return address;
}

std::string request(const std::string& method, const std::string& body) {
  const Address address = channel();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found) != 0) std::exit(91);
  int peer = -1;
  for (const addrinfo* one = found; one && peer < 0; one = one->ai_next) {
    peer = ::socket(one->ai_family, one->ai_socktype, 0);
    if (peer >= 0 && ::connect(peer, one->ai_addr, one->ai_addrlen) != 0) {
      ::close(peer);
      peer = -1;
    }
  }
  ::freeaddrinfo(found);
  if (peer < 0) std::exit(92);
  const std::string head =
      method + " " + address.path +
      " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n" +
      "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  if (::send(peer, head.data(), head.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(head.size())) std::exit(93);
  std::string answer;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(peer, buffer, sizeof buffer)) > 0) answer.append(buffer, static_cast<std::size_t>(got));
  ::close(peer);
  if (answer.rfind("HTTP/1.1 200", 0) != 0) {
    std::fprintf(stderr, "local_trial: %s\n", answer.c_str());
    std::exit(94);
  }
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

void report(const char* kind, int sequence, const char* value) {
  request("PUT",
          "{\"type\": \"metric\", \"metric\": \"{\\\"parameter_id\\\": 0, \\\"trial_job_id\\\": \\\"x\\\", "
          "\\\"type\\\": \\\"" +
              std::string(kind) + "\\\", \\\"sequence\\\": " + std::to_string(sequence) + ", \\\"value\\\": \\\"" +
              value + "\\\"}\"}");
}

void meet(const char* path, int flags) {
  int file = -1;
  do file = ::open(path, flags);
  while (file < 0 && errno == EINTR);
  if (file < 0) std::exit(95);
  char byte = 'x';
  if (flags == O_WRONLY)
    (void)!::write(file, &byte, 1);
  else
    (void)!::read(file, &byte, 1);
  ::close(file);
}

void leave_child(const char* path) {
  int ready[2];
  if (::pipe(ready) != 0) std::exit(96);
  if (const pid_t child = ::fork(); child == 0) {
    std::signal(SIGINT, SIG_IGN);
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  } else {
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);
    std::ofstream(path) << child << '\n';
  }
}

void leave_daemon(const char* path) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    if (const pid_t daemon = ::fork(); daemon != 0) {
      std::ofstream(path) << daemon << '\n';
      std::_Exit(0);
    }
    for (;;) ::pause();
  }
  ::waitpid(child, nullptr, 0);  // its child is an orphan by now
}

}  // namespace

int main(int argc, char** argv) {
  int sequence = 0;
  for (int at = 1; at < argc; ++at) {
    const std::string what = argv[at];
    const char* const next = at + 1 < argc ? argv[at + 1] : "";
    if (what == "parameters") {
      request("PUT", "{\"type\": \"request_parameter\"}");
      std::puts(request("GET", "").c_str());
    } else if (what == "directory") {
      char path[4096];
      std::puts(::getcwd(path, sizeof path) ? path : "?");
    } else if (what == "stop") {
      for (;;) ::pause();
    } else if (what == "desert") {
      if (::setpgid(0, ::getpgid(::getppid())) != 0) return 98;
    } else if (what == "ignore") {
      std::signal(SIGINT, SIG_IGN);
    } else if (what == "defer" || what == "leave") {
      sigset_t interrupt;
      sigemptyset(&interrupt);
      sigaddset(&interrupt, SIGINT);
      int which = 0;
      if (what == "defer")
        ::sigprocmask(SIG_BLOCK, &interrupt, nullptr);
      else
        ::sigwait(&interrupt, &which);
    } else if (what == "value") {
      report("PERIODICAL", std::atoi(next), argv[at + 2]);
      at += 2;
    } else {
      ++at;
      if (what == "metric")
        report("PERIODICAL", sequence++, next);
      else if (what == "final")
        report("FINAL", 0, next);
      else if (what == "flood") {
        const std::string value = "0." + std::string(std::strtoul(argv[++at], nullptr, 10), '5');
        for (unsigned long count = std::strtoul(next, nullptr, 10); count > 0; --count)
          report("PERIODICAL", sequence++, value.c_str());
      } else if (what == "tell")
        meet(next, O_WRONLY);
      else if (what == "wait")
        meet(next, O_RDONLY);
      else if (what == "print")
        std::puts(next);
      else if (what == "variable")
        std::getenv(next) ? std::printf("%s=%s\n", next, std::getenv(next)) : std::puts(next);
      else if (what == "child")
        leave_child(next);
      else if (what == "daemon")
        leave_daemon(next);
      else if (what == "exit")
        std::exit(std::atoi(next));
      else if (what == "signal")
        ::kill(::getpid(), std::atoi(next));
      else
        return 97;
    }
    std::fflush(stdout);
  }
  return 0;
}
