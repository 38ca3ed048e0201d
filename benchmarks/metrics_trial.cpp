// The trial of row `metrics_batched`: reports as fast as the library's own client takes values.
//
//   metrics_trial VALUES BOARD
//
// A value counts when the answer that followed its record is back; its latency is the time of the request that carried
// it. All clients begin together, see support/board.h.

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nni/core/json.hpp>
#include <nni/trial.hpp>

#include "support/board.h"

int main(int argc, char** argv) try {
  std::uint64_t values = 0;
  if (argc != 3) throw std::invalid_argument("usage: metrics_trial VALUES BOARD");
  const std::string_view digits = argv[1];
  if (std::from_chars(digits.data(), digits.data() + digits.size(), values).ec != std::errc{} || values == 0)
    throw std::invalid_argument("VALUES must be a number of at least 1");
  board* const meeting = board_open(argv[2]);
  board_client* const me = board_join(meeting);

  // Only the sending thread counts; this one looks when there is nothing left to send.
  nni::trial::ClientOptions options;
  options.on_recorded = [me](std::size_t count, nni::Duration waited) {
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count();
    board_count(me, static_cast<std::uint64_t>(nanoseconds), static_cast<std::uint32_t>(count));
  };
  nni::trial::Client client(nni::trial::TrialEnvironment::from_environment(), options);
  if (client.environment().stands_alone()) throw std::runtime_error("no manager started this process");
  static_cast<void>(client.get_next_parameter());

  board_begin(meeting);
  for (std::uint64_t i = 0; i < values; ++i)
    client.report_intermediate_result(nni::to_json_text(static_cast<double>(i) / static_cast<double>(values)));
  client.flush();
  me->ended_ns = board_now();
  if (me->requests != values) ++me->errors;
  // The final value is no part of the figure, and the report is read after this process has ended.
  const board_client counted = *me;
  client.report_final_result("0.5");
  *me = counted;
} catch (const std::exception& error) {
  std::cerr << "metrics_trial: " << error.what() << '\n';
  return EXIT_FAILURE;
}
