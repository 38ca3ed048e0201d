#include "test_run.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <boost/json.hpp>

#include <nni/core/json.hpp>

#include "shell.hpp"

namespace digits {
namespace {

constexpr const char* file_name = "test.json";

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  std::string text;
  std::array<char, 4096> block{};
  for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    text.append(block.data(), count);
  if (::pclose(pipe) != 0) throw std::runtime_error("the test failed; it was: " + command);
  return text;
}

/// @param text  a JSON object with the members that `digits-trial --test` prints
/// @param best  the trial that must be named in it, or that is named in the result where none is
std::optional<TestResult> parse(const std::string& text, nni::TrialId best) {
  boost::system::error_code failure;
  boost::json::value value = boost::json::parse(text, failure);
  if (failure || !value.is_object()) return std::nullopt;
  boost::json::object& object = value.get_object();
  if (!object.contains("test_accuracy") || !object.contains("images") || !object.contains("wrong")) return std::nullopt;
  const std::string id = nni::to_string(best);
  if (object.emplace("trial", id).first->value() != boost::json::value(id)) return std::nullopt;
  TestResult result;
  result.accuracy = object.at("test_accuracy").to_number<double>();
  result.images = object.at("images").to_number<std::size_t>();
  result.wrong = object.at("wrong").to_number<std::size_t>();
  result.text = nni::to_json_text(value);
  return result;
}

}  // namespace

std::optional<TestResult> read_test(const std::filesystem::path& directory, nni::TrialId best) {
  std::ifstream file(directory / file_name);
  if (!file) return std::nullopt;
  return parse(std::string(std::istreambuf_iterator<char>(file), {}), best);
}

TestResult run_test(const std::filesystem::path& program, const nni::TrialJobDetail& best, std::size_t epochs,
                    const std::filesystem::path& directory) {
  const std::string command =
      shell_word(program.string()) + " --test --epochs " + std::to_string(epochs) + " --parameters " +
      shell_word(best.parameters.text());
  const std::optional<TestResult> result = parse(output_of(command), best.trial);
  if (!result) throw std::runtime_error("the test printed no result; it was: " + command);
  std::ofstream(directory / file_name) << result->text << '\n';
  return *result;
}

}  // namespace digits
