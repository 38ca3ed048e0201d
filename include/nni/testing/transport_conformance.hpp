#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nni/async/offload.hpp>
#include <nni/async/runtime.hpp>
#include <nni/async/task_group.hpp>
#include <nni/async/timeout.hpp>
#include <nni/concepts/hooks.hpp>
#include <nni/concepts/metric_transport.hpp>
#include <nni/core/error.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/time.hpp>
#include <nni/testing/checks.hpp>

namespace nni::testing {

/// The simulated trial of the suite for transports. The functions receive the result of `environment`, block, and are
/// called from several threads.
struct TransportTrial {
  /// Reports these values, in order, as a trial would; returns when the trial could continue.
  std::function<void(const EnvironmentVariables&, const std::vector<Metric>&)> report{};
  std::function<void(const EnvironmentVariables&)> report_garbage{};  ///< reports an unreadable value
  /// Requests the parameters of a phase and waits for them; absent if the transport does not deliver parameters.
  std::function<Parameters(const EnvironmentVariables&, unsigned phase)> ask{};
  bool waits = true;                          ///< `report` returns only after the values are acknowledged
  bool multi_phase = true;                    ///< a running trial accepts further parameters
  Duration limit = std::chrono::seconds(20);  ///< timeout of one case, which detects missing messages
};

namespace detail {

template <class T, Storage Store>
class TransportSuite {
 public:
  TransportSuite(const std::function<T()>& make, const std::function<Store()>& make_store, const TransportTrial& trial,
                 ConformanceReport& report)
      : make_(make), make_store_(make_store), trial_(trial), report_(report) {}

  void run() {
    one(8, "open and close", &TransportSuite::opens_and_closes);
    if constexpr (TrialChannel<T>) {
      one(4, "values", &TransportSuite::values);
      one(2, "acknowledge", &TransportSuite::acknowledges);
      one(3, "settle", &TransportSuite::settles);
      one(4, "canceled reader", &TransportSuite::reader_is_cancelled);
      one(5, "garbage", &TransportSuite::garbage);
      if (trial_.ask) one(9, "parameters", &TransportSuite::parameters);
      if (trial_.ask && trial_.multi_phase) one(6, "phases", &TransportSuite::phases);
      one(10, "closed reader", &TransportSuite::closes_its_reader);
      if constexpr (ResumableChannel<T>) one(11, "resume", &TransportSuite::resumes);
    }
  }

 private:
  // The objects of a case.
  class Case {
   public:
    Case(Context& around, T tested, Store files)
        : context(around), transport(std::move(tested)), store(std::move(files)), trials(around) {}
    Context& context;
    T transport;
    Store store;
    async::task_group trials;  // concurrent actions of trials
  };
  static constexpr RunId first{TrialId{3}, 0};
  static constexpr RunId second{TrialId{4}, 2};

  void one(int promise, const char* name, awaitable<void> (TransportSuite::*body)(Case&)) {
    report_.run_case(promise, name, [this, body] {
      Runtime runtime;
      Case here(runtime.context(), make_(), make_store_());
      runtime.run(guarded(here, body));
    });
  }

  awaitable<void> guarded(Case& here, awaitable<void> (TransportSuite::*body)(Case&)) {
    auto mounting = here.store.open(here.context);
    co_await std::move(mounting);
    auto opening = here.transport.open(here.context, here.store);
    co_await std::move(opening);
    std::exception_ptr failure;
    try {
      auto limited = async::with_timeout((this->*body)(here), trial_.limit);
      co_await std::move(limited);
    } catch (...) {
      failure = std::current_exception();
    }
    auto closing = here.transport.close();
    co_await std::move(closing);
    // Ends whatever a failed case has left waiting.
    try {
      if (failure) here.trials.cancel();
      auto ending = here.trials.join();
      co_await std::move(ending);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
    auto leaving = here.store.close();
    co_await std::move(leaving);
    if (failure) std::rethrow_exception(failure);
  }

  // The actions of the experiment before it submits a run.
  awaitable<EnvironmentVariables> begin(Case& here, RunId run) {
    TrialJobForm form;
    form.run = run;
    form.parameter = ParameterId{run.trial.sequence()};
    form.parameters = ParametersWriter{}.add("phase", 0).finish();
    if (trial_.multi_phase) form.environment["MULTI_PHASE"] = "true";
    if constexpr (PreparesFiles<T>) {
      auto preparing = here.transport.prepare(form);
      co_await std::move(preparing);
    } else if constexpr (PreparesRuns<T>) {
      here.transport.prepare(form);
    }
    EnvironmentVariables environment = here.transport.environment(run);
    report_.check(8, "the environment of a run stays the same", environment == here.transport.environment(run));
    for (const auto& [name, value] : form.environment) environment[name] = value;
    co_return environment;
  }

  static std::vector<Metric> intermediates(RunId run, std::uint32_t from, std::uint32_t count) {
    std::vector<Metric> values;
    for (std::uint32_t index = from; index < from + count; ++index)
      values.emplace_back(run, MetricKind::intermediate, index, std::to_string(index) + ".5", TimePoint{});
    return values;
  }

  awaitable<void> report(Case& here, EnvironmentVariables environment, std::vector<Metric> values) {
    auto work =
        async::offload(here.context.pool(), [this, environment = std::move(environment), values = std::move(values)] {
          trial_.report(environment, values);
        });
    co_await std::move(work);
  }

  awaitable<void> note(awaitable<void> work, bool& done) {
    co_await std::move(work);
    done = true;
  }

  // Long enough to detect an early answer.
  static awaitable<void> moment(Case& here) { return here.context.clock().sleep_for(std::chrono::milliseconds(50)); }

  awaitable<TrialMessage> take(Case& here, bool acknowledge = true) {
    auto next = here.transport.next_message();
    TrialMessage message = co_await std::move(next);
    if (acknowledge) {
      auto answering = here.transport.acknowledge(message.receipt);
      co_await std::move(answering);
    }
    co_return message;
  }

  awaitable<void> opens_and_closes(Case& here) {
    if constexpr (TrialChannel<T>) {
      auto beginning = begin(here, first);
      const EnvironmentVariables environment = co_await std::move(beginning);
      report_.check(8, "a trial gets an address to report to", !environment.empty());
    } else {
      report_.check(8, "the environment of a run stays the same",
                    here.transport.environment(first) == here.transport.environment(first));
    }
    co_return;
  }

  awaitable<void> values(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables one = co_await std::move(beginning);
    auto another = begin(here, second);
    const EnvironmentVariables two = co_await std::move(another);
    std::vector<Metric> reported = intermediates(first, 0, 3);
    reported.emplace_back(first, MetricKind::final, 0, "0.75", TimePoint{});
    here.trials.spawn(report(here, one, reported));
    here.trials.spawn(report(here, two, intermediates(second, 0, 2)));
    std::string heard_one;
    std::string heard_two;
    for (int count = 0; count < 6; ++count) {
      auto taking = take(here);
      const TrialMessage message = co_await std::move(taking);
      const Metric& metric = message.metric;
      (metric.run == first ? heard_one : heard_two) +=
          std::string(to_string(metric.kind)) + std::to_string(metric.sequence) + "=" + metric.value + " ";
      report_.check(1, "the run comes from the channel", metric.run == first || metric.run == second);
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(4, "values of one run come in its order, with kind and sequence",
                  heard_one == "PERIODICAL0=0.5 PERIODICAL1=1.5 PERIODICAL2=2.5 FINAL0=0.75 ", heard_one);
    report_.check(4, "values of another run are its own", heard_two == "PERIODICAL0=0.5 PERIODICAL1=1.5 ", heard_two);
  }

  awaitable<void> acknowledges(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    bool answered = false;
    here.trials.spawn(note(report(here, environment, intermediates(first, 0, 1)), answered));
    auto taking = take(here, false);
    const TrialMessage message = co_await std::move(taking);
    auto early = moment(here);
    co_await std::move(early);
    if (trial_.waits) report_.check(2, "a trial gets no answer before its value is acknowledged", !answered);
    const bool before = answered;
    std::string refused;
    try {
      constexpr Receipt nobodys{0xffff'ffff'ffff};
      auto unknown = here.transport.acknowledge(nobodys);
      co_await std::move(unknown);
    } catch (const std::exception& error) {
      refused = error.what();
    }
    auto mistaken = moment(here);
    co_await std::move(mistaken);
    report_.check(2, "an unknown receipt is ignored: it is no error and acknowledges no message",
                  refused.empty() && answered == before, refused);
    auto answering = here.transport.acknowledge(message.receipt);
    co_await std::move(answering);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(2, "a trial gets its answer when its value is acknowledged", answered);
  }

  awaitable<void> settles(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    here.trials.spawn(report(here, environment, intermediates(first, 0, 2)));
    if (!trial_.waits) {
      auto written = here.trials.join();
      co_await std::move(written);
    }
    auto hearing = take(here);
    const TrialMessage heard = co_await std::move(hearing);
    report_.check(4, "the first value comes first", heard.metric.sequence == 0);
    if (trial_.waits) {
      // Its other value was sent when the first was taken, or is acknowledged like any late one.
      auto last = take(here);
      co_await std::move(last);
      auto written = here.trials.join();
      co_await std::move(written);
      bool returned = true;
      try {
        auto settling = async::with_timeout(here.transport.settle(first), trial_.limit / 2);
        co_await std::move(settling);
      } catch (const Error& error) {
        if (error.code() != make_error_code(Errc::timed_out)) throw;
        returned = false;
      }
      report_.check(3, "settling a run whose values were taken returns", returned);
      co_return;
    }
    bool settled = false;
    here.trials.spawn(note(here.transport.settle(first), settled));
    auto waiting = moment(here);
    co_await std::move(waiting);
    report_.check(3, "settling waits until the values were taken", !settled);
    auto last = take(here);
    const TrialMessage message = co_await std::move(last);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(3, "settling returns when the values were taken", settled && message.metric.sequence == 1);
  }

  awaitable<void> reader_is_cancelled(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    std::vector<TrialMessage> heard;
    const SteadyPoint until = here.context.clock().steady_now() + trial_.limit / 2;
    for (int round = 0; heard.size() < 3 && here.context.clock().steady_now() < until; ++round) {
      // The first rounds are canceled without a message, the others when one may just have arrived.
      if (round == 2) here.trials.spawn(report(here, environment, intermediates(first, 0, 3)));
      try {
        auto limited = async::with_timeout(here.transport.next_message(), std::chrono::milliseconds(5));
        heard.push_back(co_await std::move(limited));
      } catch (const Error& error) {
        if (error.code() != make_error_code(Errc::timed_out)) throw;
        continue;
      }
      auto answering = here.transport.acknowledge(heard.back().receipt);
      co_await std::move(answering);
    }
    while (heard.size() < 3) {
      auto taking = take(here);
      heard.push_back(co_await std::move(taking));
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    bool complete = true;
    for (std::uint32_t index = 0; index < 3; ++index) complete = complete && heard[index].metric.sequence == index;
    report_.check(4, "a canceled next_message loses nothing", complete);
  }

  awaitable<void> garbage(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    here.trials.spawn(nonsense(here, environment));
    std::string heard;
    for (int count = 0; count < 3; ++count) {
      auto taking = take(here);
      const TrialMessage message = co_await std::move(taking);
      heard += message.kind == TrialMessage::Kind::garbage ? "garbage " : message.metric.value + " ";
      report_.check(5, "garbage has its run", message.metric.run == first);
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(
        5, "unreadable content is delivered as garbage, and loses no value", heard == "0.5 garbage 1.5 ", heard);
  }

  awaitable<void> nonsense(Case& here, EnvironmentVariables environment) {
    auto before = report(here, environment, intermediates(first, 0, 1));
    co_await std::move(before);
    auto work = async::offload(here.context.pool(), [this, environment] { trial_.report_garbage(environment); });
    co_await std::move(work);
    auto behind = report(here, environment, intermediates(first, 1, 1));
    co_await std::move(behind);
  }

  awaitable<Parameters> asked(Case& here, EnvironmentVariables environment, unsigned phase) {
    auto work = async::offload(here.context.pool(), [this, environment = std::move(environment), phase] {
      return trial_.ask(environment, phase);
    });
    co_return co_await std::move(work);
  }

  awaitable<void> parameters(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    auto asking = asked(here, environment, 0);
    const Parameters got = co_await std::move(asking);
    report_.check(9, "a run gets the parameters of its form", got.find<int>("phase") == 0, got.text());
  }

  awaitable<void> phases(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    for (unsigned phase = 0; phase < 3; ++phase) {
      auto asking = asked(here, environment, phase);
      const Parameters got = co_await std::move(asking);
      report_.check(6, "further parameters arrive one by one", got.find<unsigned>("phase") == phase, got.text());
      auto sending = here.transport.send(first, ParametersWriter{}.add("phase", phase + 1).finish());
      co_await std::move(sending);
    }
  }

  awaitable<void> closes_its_reader(Case& here) {
    bool closed = false;
    here.trials.spawn(until_closed(here, closed));
    auto closing = here.transport.close();
    co_await std::move(closing);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(10, "a pending next_message ends with Errc::closed", closed);
  }

  awaitable<void> until_closed(Case& here, bool& closed) {
    try {
      auto next = here.transport.next_message();
      co_await std::move(next);
    } catch (const Error& error) {
      closed = error.code() == make_error_code(Errc::closed);
    }
  }

  awaitable<void> resumes(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    auto before = report(here, environment, intermediates(first, 0, 2));
    co_await std::move(before);
    auto taking = take(here);
    co_await std::move(taking);
    auto closing = here.transport.close();
    co_await std::move(closing);
    auto meanwhile = report(here, environment, intermediates(first, 2, 1));
    co_await std::move(meanwhile);

    here.transport = make_();
    auto opening = here.transport.open(here.context, here.store);
    co_await std::move(opening);
    here.transport.resume(first);
    bool settled = false;
    here.trials.spawn(note(here.transport.settle(first), settled));
    std::vector<bool> seen(3, false);
    while (!(seen[1] && seen[2])) {
      auto next = take(here);
      const TrialMessage message = co_await std::move(next);
      seen.at(message.metric.sequence) = true;
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(11, "values reported without a manager are delivered to the next one", seen[1] && seen[2] && settled);
  }

  const std::function<T()>& make_;
  const std::function<Store()>& make_store_;
  const TransportTrial& trial_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the observable promises of `nni::TrialChannel` and `nni::MetricTransportOver`. For a
/// transport that leaves the messages to the service, only opening and closing.
///
/// Each case creates a transport and a storage. The checks carry the numbers of the promises.
///
/// @param make        returns a transport that is ready to be opened
/// @param make_store  returns an empty storage
/// @param trial       simulates the trial
template <class T, Storage Store>
[[nodiscard]] ConformanceReport check_metric_transport(
    const std::function<T()>& make, const std::function<Store()>& make_store, const TransportTrial& trial) {
  ConformanceReport report;
  detail::TransportSuite<T, Store>(make, make_store, trial, report).run();
  return report;
}

}  // namespace nni::testing
