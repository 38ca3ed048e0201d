// Shows which statements with co_await this compiler gets wrong.
//
// Each pattern runs in a process of its own, because a wrong one usually crashes. Its values count their lives and
// know their own address: a value that is destroyed twice, or that was moved without its constructor, is seen even
// when nothing crashes. Patterns that the rules of nni/async/awaitable.hpp allow must be right; the program fails
// otherwise. Patterns that the rules forbid are printed only, so that the rules can be lifted knowingly.
//
// What the compiler refuses lies in the folder `rejected`, and is given to the compiler that built this program.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "../support/paths.hpp"

namespace {

namespace asio = boost::asio;
using asio::use_awaitable;

template <class T = void>
using awaitable = asio::awaitable<T>;

int living = 0;
bool damaged = false;

/// A value with a life that can be watched.
class Value {
 public:
  Value() { ++living; }
  Value(int number) : number_(number) { ++living; }
  Value(const Value& other) : number_(other.number_) { ++living; }
  Value(Value&& other) noexcept : number_(other.number_) { ++living; }
  Value& operator=(const Value& other) noexcept {
    number_ = other.number_;
    return *this;
  }
  ~Value() {
    // A copy made bit by bit has the address of its original, and a dead value has none.
    if (self_ != this) damaged = true;
    self_ = nullptr;
    --living;
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  Value* self_ = this;
  int number_ = 1;
};

struct Aggregate {
  Value value = {};
  int count = 0;
  awaitable<int> member() const { co_return count; }
};

struct Derived : Aggregate {
  Value more = {};
};

class Message {
 public:
  Message() = default;
  explicit Message(Value first, int number = 0) : value(first), count(number) {}
  Value value;
  int count = 0;
};

awaitable<void> hop() { co_await asio::post(use_awaitable); }
awaitable<int> one() {
  co_await hop();
  co_return 1;
}
awaitable<bool> yes() {
  co_await hop();
  co_return true;
}
awaitable<Value> value() {
  co_await hop();
  co_return Value(2);
}
awaitable<Aggregate> aggregate() {
  co_await hop();
  co_return Aggregate{Value(2), 3};
}
awaitable<std::pair<Value, int>> pair_of() {
  co_await hop();
  co_return std::pair<Value, int>(Value(), 4);
}
Aggregate make_aggregate() { return Aggregate{Value(5), 6}; }

awaitable<void> take(Aggregate) { co_await hop(); }
awaitable<void> take_reference(const Aggregate&) { co_await hop(); }
awaitable<void> take_derived(Derived) { co_await hop(); }
awaitable<void> take_array(std::array<Value, 2>) { co_await hop(); }
awaitable<void> take_optional(std::optional<Aggregate>) { co_await hop(); }
awaitable<void> take_message(Message) { co_await hop(); }
awaitable<void> take_pair(std::pair<Value, int>) { co_await hop(); }
awaitable<void> take_tuple(std::tuple<Value, int>) { co_await hop(); }
awaitable<void> take_string(std::string) { co_await hop(); }
awaitable<void> take_values(std::vector<Value>) { co_await hop(); }
awaitable<int> take_for_number(Aggregate) {
  co_await hop();
  co_return 1;
}
awaitable<void> take_function(std::function<void()> function) {
  co_await hop();
  function();
}
awaitable<void> take_default(int, Value = Value(3)) { co_await hop(); }
awaitable<void> take_location(std::source_location = std::source_location::current()) { co_await hop(); }

template <class F>
awaitable<void> call(F function) {
  co_await hop();
  function();
}
template <class F>
awaitable<void> call_forwarded(F&& function) {
  auto mine = std::forward<F>(function);
  co_await hop();
  mine();
}

struct Initiate {
  template <class Handler, class F>
  void operator()(Handler&& handler, F&& function) const {
    function();
    asio::post(std::forward<Handler>(handler));
  }
};
template <class F>
awaitable<void> initiate(F function) {
  return asio::async_initiate<const asio::use_awaitable_t<>&, void()>(Initiate(), use_awaitable, std::move(function));
}

// ---- what the rules forbid -------------------------------------------------------------------------------------

awaitable<void> lambda_argument() {
  Value v;
  co_await call([v] { static_cast<void>(v.number()); });
}
awaitable<void> generic_lambda_argument() {
  Value v;
  co_await call([v](auto... nothing) { static_cast<void>(v.number() + static_cast<int>(sizeof...(nothing))); });
}
awaitable<void> init_capture() {
  Value v;
  co_await call([w = std::move(v)] { static_cast<void>(w.number()); });
}
awaitable<void> lambda_to_function() {
  Value v;
  co_await take_function([v] { static_cast<void>(v.number()); });
}
awaitable<void> lambda_forwarded() {
  Value v;
  co_await call_forwarded([v] { static_cast<void>(v.number()); });
}
awaitable<void> lambda_initiated() {
  Value v;
  co_await initiate([v] { static_cast<void>(v.number()); });
}
awaitable<void> lambda_coroutine_called() {
  Value v;
  co_await [v]() -> awaitable<void> { co_await take_default(v.number()); }();
}
awaitable<void> lambda_coroutine_spawned() {
  Value v;
  auto executor = co_await asio::this_coro::executor;
  co_await asio::co_spawn(executor, [v]() -> awaitable<void> { co_await take_default(v.number()); }, use_awaitable);
}
awaitable<void> designated_argument() {
  Value v;
  co_await take({.value = v});
}
awaitable<void> braced_argument() {
  Value v;
  co_await take(Aggregate{v, 2});
}
awaitable<void> empty_braces() { co_await take({}); }
awaitable<void> braces_to_reference() { co_await take_reference(Aggregate{Value(), 2}); }
awaitable<void> derived_aggregate() { co_await take_derived(Derived{{Value(), 2}, Value()}); }
awaitable<void> array_argument() { co_await take_array(std::array<Value, 2>{Value(), Value()}); }
awaitable<void> aggregate_to_optional() { co_await take_optional(Aggregate{Value(), 2}); }
awaitable<void> aggregate_to_channel() {
  auto executor = co_await asio::this_coro::executor;
  asio::experimental::channel<void(boost::system::error_code, Aggregate)> channel(executor, 1);
  co_await channel.async_send(boost::system::error_code(), Aggregate{Value(), 2}, use_awaitable);
  co_await channel.async_receive(use_awaitable);
}
awaitable<int> returned_number() { co_return co_await take_for_number(Aggregate{Value(), 2}); }
awaitable<void> braces_in_return() { co_await returned_number(); }
awaitable<void> await_in_braces() {
  Aggregate result{co_await value(), 2};
  static_cast<void>(result.count);
}
awaitable<void> await_in_designators() {
  Aggregate result{.value = co_await value(), .count = co_await one()};
  static_cast<void>(result.count);
}
awaitable<void> conditional_await() {
  const bool b = co_await yes();
  const Value result = b ? co_await value() : Value();
  static_cast<void>(result.number());
}
awaitable<void> await_of_conditional() {
  const bool b = co_await yes();
  co_await (b ? take_string(std::string(60, 'a')) : take_string(std::string(60, 'b')));
}
awaitable<void> member_of_temporary() { co_await Aggregate{Value(), 2}.member(); }

// ---- what the rules allow --------------------------------------------------------------------------------------

awaitable<void> named_then_moved() {
  Aggregate argument{Value(), 2};
  co_await take(std::move(argument));
}
awaitable<void> two_statements() {
  auto work = take({Value(), 2});
  co_await std::move(work);
}
awaitable<void> two_statements_lambda() {
  Value v;
  auto work = call([v] { static_cast<void>(v.number()); });
  co_await std::move(work);
}
awaitable<void> named_lambda() {
  Value v;
  auto function = [v] { static_cast<void>(v.number()); };
  co_await call(std::move(function));
}
awaitable<void> reference_capture() {
  Value v;
  co_await call([&v] { static_cast<void>(v.number()); });
}
awaitable<void> trivial_capture() {
  const int number = co_await one();
  co_await call([number] { static_cast<void>(number); });
}
awaitable<void> temporary_with_constructor() { co_await take_message(Message(Value(), 2)); }
awaitable<void> temporary_pair_and_tuple() {
  co_await take_pair(std::pair<Value, int>(Value(), 2));
  co_await take_tuple(std::tuple<Value, int>(Value(), 2));
}
awaitable<void> temporary_string_and_vector() {
  co_await take_string(std::string(60, 'a'));
  co_await take_values(std::vector<Value>(3));
}
awaitable<void> factory_call() { co_await take(make_aggregate()); }
awaitable<void> returned_aggregate() {
  const Aggregate result = co_await aggregate();
  static_cast<void>(result.count);
}
awaitable<void> default_arguments() {
  co_await take_default(1);
  co_await take_location();
}
awaitable<void> structured_binding() {
  const auto result = co_await pair_of();
  const auto& [first, second] = result;
  static_cast<void>(first.number() + second);
}
awaitable<void> conditions_and_loops() {
  if (co_await yes()) co_await hop();
  int left = 2;
  while (left > 0) left -= co_await one();
  switch (co_await one()) {
    case 1: co_await hop(); break;
    default: break;
  }
  for (const int i : std::array<int, 2>{1, 2}) co_await take_default(i);
}
awaitable<void> logic_and_sums() {
  const bool both = co_await yes() && co_await yes();
  int sum = both ? 1 : 0;
  sum += co_await one();
  sum = sum + co_await one() * co_await one();
  static_cast<void>(sum);
}
template <class... T>
awaitable<int> folded(T... numbers) {
  co_return ((co_await take_for_number(Aggregate(make_aggregate())) + numbers) + ...);
}
awaitable<void> fold_expression() { co_await folded(1, 2, 3); }
awaitable<void> await_after_catch() {
  std::exception_ptr failure;
  try {
    co_await hop();
    throw Value(3);
  } catch (const Value&) {
    failure = std::current_exception();
  }
  co_await hop();
  static_cast<void>(failure == nullptr);
}
template <class T>
class Template {
 public:
  template <class F>
    requires std::invocable<F&>
  awaitable<T> apply(F function) {
    co_await hop();
    function();
    co_return T();
  }
};
awaitable<void> constrained_member() {
  Template<Value> object;
  Value v;
  auto work = object.apply([v] { static_cast<void>(v.number()); });
  const Value result = co_await std::move(work);
  static_cast<void>(result.number());
}
awaitable<void> spawn_without_await() {
  Value v;
  auto executor = co_await asio::this_coro::executor;
  asio::co_spawn(executor, [v]() -> awaitable<void> { co_await take_default(v.number()); }, asio::detached);
  co_await hop();
}

struct Pattern {
  const char* text;
  const char* rule;  // that forbids it; empty: allowed
  awaitable<void> (*run)();
};

const Pattern patterns[] = {
    {"co_await f([v] {...})", "R1", &lambda_argument},
    {"co_await f([v](auto...) {...})", "R1", &generic_lambda_argument},
    {"co_await f([w = std::move(v)] {...})", "R1", &init_capture},
    {"co_await f([v] {...}), std::function parameter", "R1", &lambda_to_function},
    {"co_await f([v] {...}), forwarding reference", "R1", &lambda_forwarded},
    {"co_await f([v] {...}), async_initiate wrapper", "R1", &lambda_initiated},
    {"co_await [v]() -> awaitable<void> {...}()", "R5", &lambda_coroutine_called},
    {"co_await co_spawn(ex, [v]() -> awaitable<void> {...}, use_awaitable)", "R5", &lambda_coroutine_spawned},
    {"co_await f({.value = v})", "R1", &designated_argument},
    {"co_await f(Aggregate{v, 2})", "R1", &braced_argument},
    {"co_await f({})", "R1", &empty_braces},
    {"co_await f(Aggregate{...}), const& parameter", "R1", &braces_to_reference},
    {"co_await f(Derived{{...}, ...})", "R1", &derived_aggregate},
    {"co_await f(std::array<T, 2>{...})", "R1", &array_argument},
    {"co_await f(Aggregate{...}), optional parameter", "R1", &aggregate_to_optional},
    {"co_await channel.async_send(ec, Aggregate{...}, use_awaitable)", "R1", &aggregate_to_channel},
    {"co_return co_await f(Aggregate{...})", "R1", &braces_in_return},
    {"Aggregate a{co_await f(), 2}", "R1", &await_in_braces},
    {"Aggregate a{.value = co_await f(), ...}", "R1", &await_in_designators},
    {"b ? co_await f() : T()", "R3", &conditional_await},
    {"co_await (b ? f(x) : f(y))", "R3", &await_of_conditional},
    {"co_await Aggregate{...}.member()", "R1", &member_of_temporary},
    {"named aggregate, then std::move", "", &named_then_moved},
    {"auto work = f({...}); co_await std::move(work)", "", &two_statements},
    {"auto work = f([v] {...}); co_await std::move(work)", "", &two_statements_lambda},
    {"named lambda, then std::move", "", &named_lambda},
    {"lambda that captures by reference", "", &reference_capture},
    {"lambda that captures a trivial value", "", &trivial_capture},
    {"temporary of a class with constructors", "", &temporary_with_constructor},
    {"temporary pair and tuple", "", &temporary_pair_and_tuple},
    {"temporary string and vector(n)", "", &temporary_string_and_vector},
    {"call of a factory that returns an aggregate", "", &factory_call},
    {"co_return Aggregate{...}", "", &returned_aggregate},
    {"default arguments, source_location", "", &default_arguments},
    {"structured bindings of a named result", "", &structured_binding},
    {"if, while, switch, for", "", &conditions_and_loops},
    {"&&, +=, sums", "", &logic_and_sums},
    {"fold expression", "", &fold_expression},
    {"co_await after a handler", "", &await_after_catch},
    {"constrained member template of a template", "", &constrained_member},
    {"co_spawn(ex, [v]() -> awaitable<void> {...}, detached)", "", &spawn_without_await},
};

/// Runs one pattern in this process; false when a value was damaged, lost or destroyed twice.
bool is_right(const Pattern& pattern) {
  living = 0;
  damaged = false;
  {
    asio::io_context context;
    asio::co_spawn(context, pattern.run(), asio::detached);
    context.run();
  }
  return living == 0 && !damaged;
}

/// Runs one pattern in a process of its own.
std::string result_of(const Pattern& pattern) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return "cannot fork";
  if (child == 0) {
    // A sanitizer's report about a pattern that is known to be wrong would only frighten.
    if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(3);
    ::_exit(is_right(pattern) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return "BROKEN (signal " + std::to_string(WTERMSIG(status)) + ")";
  if (WEXITSTATUS(status) == 0) return "ok";
  if (WEXITSTATUS(status) == 1) return "BROKEN (destroyed twice or lost)";
  return "BROKEN (exit code " + std::to_string(WEXITSTATUS(status)) + ")";
}

/// The command that runs the compiler of this program, or nothing when it is not at hand.
std::string own_compiler() {
#if defined(__clang__)
  const std::string name = "clang++";
  const int major = __clang_major__;
#else
  const std::string name = "g++";
  const int major = __GNUC__;
#endif
  for (const std::string& command : {name + "-" + std::to_string(major), name}) {
    const std::string version_is = command + " -dumpversion 2>/dev/null | grep -q '^" + std::to_string(major) + "\\b'";
    if (std::system(version_is.c_str()) == 0) return command;
  }
  return "";
}

/// What a program in `rejected` shows, from its first line.
std::string text_of(const std::filesystem::path& source) {
  std::ifstream file(source);
  std::string line;
  std::getline(file, line);
  const std::string head = "// pattern: ";
  return line.compare(0, head.size(), head) == 0 ? line.substr(head.size()) : source.filename().string();
}

void print_row(const std::string& text, const std::string& rule, const std::string& result) {
  std::printf("%-72s %-8s %s\n", text.c_str(), rule.empty() ? "allowed" : rule.c_str(), result.c_str());
}

/// Gives the programs in `rejected` to the compiler; returns how many it refuses.
int print_rejected() {
  const std::string compiler = own_compiler();
  std::vector<std::filesystem::path> sources;
  const auto folder = nni_test::source_dir() / "tests" / "compiler" / "rejected";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".cpp") sources.push_back(entry.path());
  std::sort(sources.begin(), sources.end());

  int refused = 0;
  for (const auto& source : sources) {
    std::string result = "not tried: the compiler of this program is not on the PATH";
    if (!compiler.empty()) {
      const std::string command = compiler + " -std=c++20 -fsyntax-only '" + source.string() + "' 2>/dev/null";
      const bool accepted = std::system(command.c_str()) == 0;
      result = accepted ? "ok" : "BROKEN (does not compile)";
      if (!accepted) ++refused;
    }
    print_row(text_of(source), "R4", result);
  }
  return refused;
}

}  // namespace

int main() {
  std::printf("statements with co_await, compiler %s\n\n", __VERSION__);
  int broken = 0;
  int wrong = 0;
  for (const Pattern& pattern : patterns) {
    const std::string rule = pattern.rule;
    const std::string result = result_of(pattern);
    print_row(pattern.text, rule, result);
    if (result == "ok") continue;
    if (rule.empty())
      ++wrong;
    else
      ++broken;
  }
  broken += print_rejected();

  std::printf("\n%d patterns that the rules forbid are broken here, %d that they allow.\n", broken, wrong);
  if (broken == 0) std::printf("On this compiler the rules R1, R3, R4 and R5 are not needed.\n");
  if (wrong > 0) std::printf("The rules of nni/async/awaitable.hpp do not suffice for this compiler.\n");
  return wrong == 0 ? 0 : 1;
}
