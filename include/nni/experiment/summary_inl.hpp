#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/core/json.hpp>
#include <nni/core/metric.hpp>
#include <nni/experiment/summary.hpp>

namespace nni {

namespace detail {

NNI_LAZY NNI_INLINE std::optional<double> run_seconds(const TrialJobDetail& trial) {
  if (!trial.start_time || !trial.end_time) return std::nullopt;
  return std::chrono::duration<double>(*trial.end_time - *trial.start_time).count();
}

NNI_LAZY NNI_INLINE boost::json::value json_of_text(const std::string& text) {
  boost::system::error_code failure;
  boost::json::value value = parse_json(text, failure);
  if (failure) return boost::json::value(text);
  return value;
}

NNI_LAZY NNI_INLINE boost::json::object json_of_trial(const TrialJobDetail& trial) {
  boost::json::object object;
  object["id"] = to_string(trial.trial);
  object["sequence"] = trial.trial.sequence();
  object["status"] = to_string(trial.status);
  object["parameters"] = json_of_text(trial.parameters.text());
  if (trial.final_value) object["final"] = json_of_text(*trial.final_value);
  if (trial.start_time) object["start_time"] = to_epoch_ms(*trial.start_time);
  if (trial.end_time) object["end_time"] = to_epoch_ms(*trial.end_time);
  object["attempts"] = trial.attempts;
  if (trial.exit_code) object["exit_code"] = *trial.exit_code;
  if (trial.signal) object["signal"] = *trial.signal;
  if (!trial.message.empty()) object["message"] = trial.message;
  if (!trial.working_directory.empty()) object["working_directory"] = trial.working_directory;
  return object;
}

// Parameters of nested choices become columns of their own, joined with a slash.
NNI_LAZY NNI_INLINE void flatten(const boost::json::value& value, const std::string& prefix,
                                 std::vector<std::pair<std::string, std::string>>& out) {
  if (const auto* object = value.if_object(); object && !(object->empty() && !prefix.empty())) {
    for (const auto& member : *object)
      flatten(
          member.value(), prefix.empty() ? std::string(member.key()) : prefix + "/" + std::string(member.key()), out);
    return;
  }
  if (const auto* text = value.if_string()) {
    out.emplace_back(prefix, std::string(text->data(), text->size()));
  } else {
    out.emplace_back(prefix, to_json_text(value));
  }
}

NNI_LAZY NNI_INLINE std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + "\"";
}

/// Why an experiment has no best trial, for people: what happened, and what to do.
NNI_LAZY NNI_INLINE std::string why_no_best(const Summary& summary) {
  const std::string resume =
      "; run it again, with .resume = nni::Resume::if_exists and a data store to go on from there";
  if (summary.finished == 0 && summary.status == ExperimentStatus::stopped)
    return "the experiment was stopped before any trial had ended" + resume;
  if (summary.finished == 0) return "the experiment ended without a trial; look at .max_trials and at the tuner";
  const std::uint64_t succeeded = summary.count(TrialJobStatus::succeeded);
  if (succeeded != 0)
    return "no trial reported a number as its final result, although " + std::to_string(succeeded) + " of " +
           std::to_string(summary.finished) +
           " succeeded; let each call report_final_result(value) once, with a finite value or a JSON object whose "
           "member \"default\" is one";
  if (!summary.failures.empty()) {
    const TrialJobDetail& first = summary.failures.front();
    return "no trial succeeded: " + std::to_string(summary.count(TrialJobStatus::failed)) + " of " +
           std::to_string(summary.finished) + " failed, the first (" + nni::to_string(first.trial) +
           ") with: " + (first.message.empty() ? "no message" : first.message) + "; correct the trial and run it again";
  }
  if (summary.status == ExperimentStatus::stopped)
    return "the experiment was stopped before any trial had succeeded" + resume;
  return "none of the " + std::to_string(summary.finished) +
         " trials succeeded, because all were stopped; look at the "
         "limits and the assessor of the experiment";
}

}  // namespace detail

NNI_LAZY_BODY const TrialJobDetail& Summary::best_or_throw() const& {
  if (top.empty()) throw Error(Errc::not_found, detail::why_no_best(*this));
  return top.front();
}

NNI_LAZY_BODY TrialJobDetail Summary::best_or_throw() && { return std::as_const(*this).best_or_throw(); }

NNI_LAZY_BODY std::string Summary::to_json() const {
  boost::json::object object;
  object["id"] = id.value;
  object["name"] = name;
  if (!directory.empty()) object["directory"] = directory.string();
  object["status"] = nni::to_string(status);
  if (!message.empty()) object["message"] = message;
  object["direction"] = nni::to_string(direction);
  object["seed"] = seed;
  object["duration_seconds"] = std::chrono::duration<double>(duration).count();
  object["ordered"] = ordered;
  object["finished"] = finished;
  boost::json::object counts;
  for (std::uint8_t value = 0; value < 8; ++value)
    if (by_status[value] != 0) counts[nni::to_string(static_cast<TrialJobStatus>(value))] = by_status[value];
  object["by_status"] = std::move(counts);
  if (unfitting != 0) object["unfitting"] = unfitting;
  object["garbage_messages"] = garbage_messages;
  object["late_messages"] = late_messages;
  if (without_value != 0) object["without_value"] = without_value;
  if (without_value != 0) object["no_value"] = no_value;
  const TrialJobDetail* winner = best();
  object["best"] = winner ? boost::json::value(detail::json_of_trial(*winner)) : boost::json::value(nullptr);
  boost::json::array list;
  for (const TrialJobDetail& trial : trials) list.push_back(detail::json_of_trial(trial));
  object["trials"] = std::move(list);
  return to_json_text(boost::json::value(std::move(object)));
}

NNI_LAZY_BODY std::string Summary::to_csv() const {
  std::vector<std::string> columns;
  std::vector<std::vector<std::pair<std::string, std::string>>> values(trials.size());
  for (std::size_t row = 0; row < trials.size(); ++row) {
    detail::flatten(detail::json_of_text(trials[row].parameters.text()), "", values[row]);
    for (const auto& [name_of, value] : values[row])
      if (std::find(columns.begin(), columns.end(), name_of) == columns.end()) columns.push_back(name_of);
  }
  std::string text = "id,sequence,status,value,seconds";
  for (const std::string& column : columns) text += "," + detail::csv_field(column);
  text += "\r\n";
  for (std::size_t row = 0; row < trials.size(); ++row) {
    const TrialJobDetail& trial = trials[row];
    const std::optional<double> value = final_number(trial);
    const std::optional<double> seconds = detail::run_seconds(trial);
    text += nni::to_string(trial.trial) + "," + std::to_string(trial.trial.sequence()) + "," +
            std::string(nni::to_string(trial.status)) + "," + (value ? to_json_text(*value) : "") + "," +
            (seconds ? to_json_text(*seconds) : "");
    for (const std::string& column : columns) {
      text += ',';
      for (const auto& [name_of, cell] : values[row])
        if (name_of == column) text += detail::csv_field(cell);
    }
    text += "\r\n";
  }
  return text;
}

}  // namespace nni
