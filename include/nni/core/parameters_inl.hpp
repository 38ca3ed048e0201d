#pragma once

#include <cmath>
#include <ostream>

#include <boost/json.hpp>

#include <nni/core/parameters.hpp>

namespace nni {

namespace detail {

NNI_INLINE const boost::json::value* find_parameter(const boost::json::value& all, std::string_view name) {
  const boost::json::value* at = &all;
  // A complete name takes precedence over a path, so that keys that contain slashes stay reachable.
  if (const auto* object = at->if_object())
    if (const auto* direct = object->if_contains(name)) return direct;
  while (true) {
    const auto* object = at->if_object();
    if (!object) return nullptr;
    const std::size_t slash = name.find('/');
    at = object->if_contains(name.substr(0, slash));
    if (!at || slash == std::string_view::npos) return at;
    name.remove_prefix(slash + 1);
  }
}

NNI_INLINE boost::json::value require_parameter(const Parameters& parameters, std::string_view name) {
  const boost::json::value all = parameters.to_json();
  if (const boost::json::value* found = find_parameter(all, name)) return *found;
  throw Error(
      Errc::not_found, "there is no parameter \"" + std::string(name) + "\"; this trial has " + parameters.text());
}

NNI_INLINE Error wrong_parameter_type(std::string_view name, const boost::json::value& value, const char* wanted) {
  return Error(Errc::protocol, "parameter \"" + std::string(name) + "\" is " + to_json_text(value) + ", not " + wanted);
}

}  // namespace detail

NNI_INLINE Parameters::Parameters(const boost::json::object& object)
    : text_(to_json_text(boost::json::value(object))) {}

NNI_INLINE Result<Parameters> Parameters::parse(std::string text) {
  boost::system::error_code failure;
  const boost::json::value value = parse_json(text, failure);
  if (failure || !value.is_object())
    return Error(Errc::protocol, "parameters must be a JSON object, not: " + text.substr(0, 200));
  return Parameters(std::move(text));
}

NNI_INLINE boost::json::value Parameters::to_json() const {
  boost::system::error_code failure;
  boost::json::value value = parse_json(text_, failure);
  if (failure) throw Error(Errc::protocol, "parameters are not JSON: " + text_.substr(0, 200));
  return value;
}

NNI_INLINE bool Parameters::contains(std::string_view name) const {
  const boost::json::value all = to_json();
  return detail::find_parameter(all, name) != nullptr;
}

NNI_INLINE double Parameters::get_number(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  if (!value.is_number()) throw detail::wrong_parameter_type(name, value, "a number");
  return value.to_number<double>();
}

NNI_INLINE std::int64_t Parameters::get_integer(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  if (const auto* integer = value.if_int64()) return *integer;
  // Quantized parameters are transmitted as real numbers (16.0), but they are integers.
  if (const auto* real = value.if_double(); real && std::nearbyint(*real) == *real && std::abs(*real) < 9.0e15)
    return static_cast<std::int64_t>(*real);
  throw detail::wrong_parameter_type(name, value, value.is_uint64() ? "a signed integer of 64 bits" : "an integer");
}

NNI_INLINE std::uint64_t Parameters::get_unsigned(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  // Boost.JSON holds only numbers above the largest signed one as unsigned.
  if (const auto* large = value.if_uint64()) return *large;
  const std::int64_t integer = get_integer(name);
  if (integer < 0)
    throw Error(Errc::protocol, "parameter \"" + std::string(name) + "\" is " + std::to_string(integer) +
                                    ", which does not fit the requested unsigned type");
  return static_cast<std::uint64_t>(integer);
}

NNI_INLINE bool Parameters::get_bool(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  if (const bool* flag = value.if_bool()) return *flag;
  throw detail::wrong_parameter_type(name, value, "true or false");
}

NNI_INLINE std::string Parameters::get_string(std::string_view name) const {
  const boost::json::value value = detail::require_parameter(*this, name);
  if (const auto* text = value.if_string()) return {text->data(), text->size()};
  throw detail::wrong_parameter_type(name, value, "a string");
}

NNI_INLINE boost::json::value Parameters::get_value(std::string_view name) const {
  return detail::require_parameter(*this, name);
}

NNI_INLINE std::ostream& operator<<(std::ostream& out, const Parameters& parameters) {
  return out << parameters.text();
}

}  // namespace nni
