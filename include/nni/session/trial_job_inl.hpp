#pragma once

#include <boost/json.hpp>

#include <nni/channel/protocol.hpp>
#include <nni/session/trial_job.hpp>

namespace nni {

NNI_INLINE std::string TrialJobMetric::data() const {
  channel::MetricPayload payload(metric_.kind, metric_.sequence, metric_.value);
  payload.parameter_id = std::to_string(parameter_.value);
  payload.trial_job_id = to_string(metric_.run.trial);
  return channel::encode(payload);
}

NNI_INLINE boost::json::object to_json(const TrialJobDetail& detail) {
  boost::json::object form;
  form["sequenceId"] = detail.trial.sequence();
  boost::json::object& parameters = form["hyperParameters"].emplace_object();
  parameters["value"] = channel::parameter_record(detail.parameter, detail.parameters);
  parameters["index"] = 0;

  boost::json::object result;
  result["id"] = to_string(detail.trial);
  result["sequenceId"] = detail.trial.sequence();
  result["status"] = to_string(detail.status);
  const auto put_time = [&result](const char* name, const std::optional<TimePoint>& at) {
    if (at) result[name] = to_epoch_ms(*at);
  };
  put_time("submitTime", detail.submit_time);
  put_time("startTime", detail.start_time);
  put_time("endTime", detail.end_time);
  if (!detail.tags.empty()) result["tags"] = boost::json::array(detail.tags.begin(), detail.tags.end());
  if (!detail.url.empty()) result["url"] = detail.url;
  result["workingDirectory"] = detail.working_directory;
  result["form"] = std::move(form);
  if (is_terminal(detail.status)) result["isEarlyStopped"] = detail.is_early_stopped;
  if (!detail.message.empty()) result["message"] = detail.message;
  if (!detail.environment.empty()) result["envId"] = detail.environment;
  return result;
}

}  // namespace nni
