#pragma once

/// @file
/// Child processes for tests, without the library's own launcher.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace nni_test {

/// How a child ended.
struct ChildEnd {
  int code = -1;       ///< exit code, or minus the number of the signal
  std::string output;  ///< standard output and error
};

/// One child process; its output goes to a temporary file. It is waited for, at the latest by the destructor.
class Child {
 public:
  /// @param arguments    program with its path, and its arguments
  /// @param environment  added to the environment of this process; an empty value removes a variable
  Child(std::vector<std::string> arguments, const std::map<std::string, std::string>& environment) {
    std::map<std::string, std::string> all;
    for (char** entry = environ; *entry; ++entry) {
      const std::string text = *entry;
      all[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    }
    for (const auto& [name, value] : environment) {
      if (value.empty())
        all.erase(name);
      else
        all[name] = value;
    }
    std::vector<std::string> variables;
    for (const auto& [name, value] : all) variables.push_back(name + "=" + value);
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> result;
      for (std::string& text : texts) result.push_back(text.data());
      result.push_back(nullptr);
      return result;
    };
    char name[] = "/tmp/nni-test-child-XXXXXX";
    output_ = ::mkostemp(name, O_CLOEXEC);
    if (output_ < 0) throw std::runtime_error("no temporary file for the output of a child");
    ::unlink(name);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, output_, 1);
    ::posix_spawn_file_actions_adddup2(&actions, output_, 2);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    const int failure = ::posix_spawn(
        &pid_, arguments.at(0).c_str(), &actions, nullptr, pointers(arguments).data(), pointers(variables).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) {
      ::close(output_);
      throw std::runtime_error("cannot start " + arguments[0]);
    }
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ > 0) wait();
    if (output_ >= 0) ::close(output_);
  }

  pid_t pid() const { return pid_; }

  /// Waits for the end.
  ChildEnd wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    ChildEnd end;
    end.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    char bytes[4096];
    ::lseek(output_, 0, SEEK_SET);
    for (ssize_t size = 0; (size = ::read(output_, bytes, sizeof bytes)) > 0;)
      end.output.append(bytes, static_cast<std::size_t>(size));
    return end;
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

/// Runs a child to its end.
inline ChildEnd run_child(std::vector<std::string> arguments, const std::map<std::string, std::string>& environment) {
  return Child(std::move(arguments), environment).wait();
}

}  // namespace nni_test
