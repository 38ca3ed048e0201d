#pragma once

#include <cmath>
#include <set>

#include <boost/json.hpp>

#include <nni/space/search_space.hpp>

namespace nni {

namespace detail::space {

/// Largest integer up to which doubles represent all integers.
inline constexpr double exact_limit = 0x1p53;

// ---- checking ----

NNI_INLINE void check_dimensions(const std::vector<Dimension>& dimensions, const std::string& key,
                                 ProblemList& problems);

NNI_INLINE bool check_numbers(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  const bool bell = is_normal(dimension.type);
  const char* const names[] = {bell ? "mu" : "min", bell ? "sigma" : "max", "q"};
  bool good = true;
  for (std::size_t index = 0; index < dimension.values.size(); ++index) {
    if (std::isfinite(dimension.values[index])) continue;
    problems.add(
        key + "." + names[index], "is " + to_json_text(dimension.values[index]) + ", but must be a finite number");
    good = false;
  }
  return good;
}

NNI_INLINE void check_range(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  if (!check_numbers(dimension, key, problems)) return;
  const double first = dimension.values[0];
  const double second = dimension.values[1];
  if (is_normal(dimension.type)) {
    if (!(second > 0.0)) problems.add(key + ".sigma", "is " + to_json_text(second) + ", but must be greater than 0");
  } else {
    const bool integer = dimension.type == DimensionType::randint;
    const auto shown = [integer](double value) {
      return integer ? std::to_string(static_cast<std::int64_t>(value)) : to_json_text(value);
    };
    if (integer && !(std::abs(first) <= exact_limit && std::abs(second) <= exact_limit)) {
      problems.add(key, "has the limits " + to_json_text(first) + " and " + to_json_text(second) +
                            ", but integers must lie between -2^53 and 2^53, where real numbers are exact");
      return;
    }
    if (!(first < second))
      problems.add(key + ".max", "is " + shown(second) + ", but must be greater than min, which is " + shown(first) +
                                     (integer ? "; max itself is excluded" : ""));
    if (is_logarithmic(dimension.type) && !(first > 0.0))
      problems.add(key + ".min", "is " + to_json_text(first) + ", but must be greater than 0, because " +
                                     std::string(to_string(dimension.type)) + " takes its logarithm");
  }
  if (is_quantized(dimension.type) && !(dimension.values[2] > 0.0))
    problems.add(key + ".q", "is " + to_json_text(dimension.values[2]) + ", but must be greater than 0");
}

NNI_INLINE void check_choice(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  if (dimension.options.empty()) {
    problems.add(key, "is a choice without options; give at least one");
    return;
  }
  const bool branches = dimension.options.front().is_branch();
  std::set<std::string_view> names;
  std::set<std::string> values;
  for (std::size_t index = 0; index < dimension.options.size(); ++index) {
    const ChoiceOption& option = dimension.options[index];
    const std::string place = key + "._value[" + std::to_string(index) + "]";
    if (option.is_branch() != branches) {
      problems.add(place, "is " + option.text() + (option.is_branch() ? ", a branch" : ", a plain value") +
                              "; the options of one choice are either all branches or all plain values");
      continue;
    }
    if (option.number() && !std::isfinite(*option.number()))
      problems.add(place, "is " + option.text() + ", but must be a finite number");
    if (!branches) {
      const std::string value = option.number() ? to_json_text(*option.number()) : option.text();
      if (!values.insert(value).second)
        problems.add(place, "is a second option " + option.text() + "; values must be unique");
      continue;
    }
    if (!names.insert(option.name()).second)
      problems.add(place, "is a second branch named \"" + option.name() + "\"; names of branches must be unique");
    check_dimensions(option.dimensions(), key + "." + option.name(), problems);
    for (const Dimension& inner : option.dimensions())
      if (inner.name == "_name")
        problems.add(
            key + "." + option.name() + "._name", "is the key that holds the branch; give the dimension another name");
  }
}

NNI_INLINE void check_dimension(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  if (dimension.type == DimensionType::choice)
    check_choice(dimension, key, problems);
  else
    check_range(dimension, key, problems);
}

NNI_INLINE void check_dimensions(const std::vector<Dimension>& dimensions, const std::string& key,
                                 ProblemList& problems) {
  std::set<std::string_view> names;
  for (const Dimension& dimension : dimensions) {
    const std::string place = key + "." + dimension.name;
    if (dimension.name.empty())
      problems.add(key, "has a dimension without a name");
    else if (!names.insert(dimension.name).second)
      problems.add(place, "is specified twice; names must be unique");
    check_dimension(dimension, place, problems);
  }
}

// ---- reading ----

inline constexpr std::string_view dimension_types =
    "one of choice, randint, uniform, quniform, loguniform, qloguniform, normal, qnormal, lognormal, qlognormal";

NNI_INLINE std::optional<DimensionType> parse_dimension_type(std::string_view name) {
  for (int type = 0; type <= static_cast<int>(DimensionType::qlognormal); ++type)
    if (to_string(static_cast<DimensionType>(type)) == name) return static_cast<DimensionType>(type);
  return std::nullopt;
}

NNI_INLINE std::string shown(const boost::json::value& value) {
  std::string text = to_json_text(value);
  if (text.size() > 100) text = text.substr(0, 97) + "...";
  return text;
}

NNI_INLINE std::string_view view(boost::json::string_view text) { return {text.data(), text.size()}; }

NNI_INLINE std::vector<Dimension> read_dimensions(
    const boost::json::object& object, const std::string& key, bool inside_branch, ProblemList& problems);

NNI_INLINE std::optional<ChoiceOption> read_option(
    const boost::json::value& value, const std::string& key, const std::string& place, ProblemList& problems) {
  switch (value.kind()) {
    case boost::json::kind::string: return ChoiceOption(view(value.get_string()));
    case boost::json::kind::bool_: return ChoiceOption(value.get_bool());
    case boost::json::kind::int64: return ChoiceOption(value.get_int64());
    case boost::json::kind::uint64: return ChoiceOption(value.get_uint64());
    case boost::json::kind::double_: return ChoiceOption(value.get_double());
    case boost::json::kind::object: {
      const boost::json::value* name = value.get_object().if_contains("_name");
      if (name && name->is_string()) {
        const std::string text(view(name->get_string()));
        return ChoiceOption(text, read_dimensions(value.get_object(), key + "." + text, true, problems));
      }
      break;
    }
    default: break;
  }
  problems.add(
      place, "is " + shown(value) + "; an option is a number, a string, true, false, or an object with a \"_name\"");
  return std::nullopt;
}

NNI_INLINE std::optional<Dimension> read_choice(
    std::string name, const boost::json::array& values, const std::string& key, ProblemList& problems) {
  std::vector<ChoiceOption> options;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const std::string place = key + "._value[" + std::to_string(index) + "]";
    if (std::optional<ChoiceOption> option = read_option(values[index], key, place, problems))
      options.push_back(std::move(*option));
  }
  // An empty list may be left only because every option was reported already.
  if (options.empty() && !values.empty()) return std::nullopt;
  return Dimension(std::move(name), std::move(options));
}

NNI_INLINE std::optional<Dimension> read_range(std::string name, DimensionType type, const boost::json::array& values,
                                               const std::string& key, ProblemList& problems) {
  const std::string form =
      std::string(is_normal(type) ? "[mu, sigma" : "[min, max") + (is_quantized(type) ? ", q]" : "]");
  const std::size_t wanted = is_quantized(type) ? 3 : 2;
  if (values.size() != wanted) {
    problems.add(key + "._value", "is " + shown(values) + ", but " + std::string(to_string(type)) + " needs " + form);
    return std::nullopt;
  }
  std::vector<double> numbers;
  for (std::size_t index = 0; index < wanted; ++index) {
    const boost::json::value& value = values[index];
    const bool whole = !value.is_number() || std::nearbyint(value.to_number<double>()) == value.to_number<double>();
    if (value.is_number() && (type != DimensionType::randint || whole)) {
      numbers.push_back(value.to_number<double>());
      continue;
    }
    problems.add(key + "._value[" + std::to_string(index) + "]",
                 "is " + shown(value) + ", but " + std::string(to_string(type)) + " needs " + form +
                     (type == DimensionType::randint ? " of integers" : " of numbers"));
  }
  if (numbers.size() != wanted) return std::nullopt;
  return Dimension(std::move(name), type, std::move(numbers));
}

NNI_INLINE std::optional<Dimension> read_dimension(
    std::string name, const boost::json::value& spec, const std::string& key, ProblemList& problems) {
  const boost::json::object* object = spec.if_object();
  if (!object) {
    problems.add(key, "is " + shown(spec) + ", but must be an object with \"_type\" and \"_value\"");
    return std::nullopt;
  }
  const boost::json::value* type_name = object->if_contains("_type");
  const boost::json::value* value = object->if_contains("_value");
  std::optional<DimensionType> type;
  if (!type_name) {
    problems.add(key + "._type", "is missing; give " + std::string(dimension_types));
  } else {
    if (type_name->is_string()) type = parse_dimension_type(view(type_name->get_string()));
    if (!type)
      problems.add(key + "._type", "is " + shown(*type_name) + ", but must be " + std::string(dimension_types));
  }
  if (!value)
    problems.add(key + "._value", "is missing; give a list");
  else if (!value->is_array())
    problems.add(key + "._value", "is " + shown(*value) + ", but must be a list");
  if (!type || !value || !value->is_array()) return std::nullopt;
  if (*type == DimensionType::choice) return read_choice(std::move(name), value->get_array(), key, problems);
  return read_range(std::move(name), *type, value->get_array(), key, problems);
}

NNI_INLINE std::vector<Dimension> read_dimensions(
    const boost::json::object& object, const std::string& key, bool inside_branch, ProblemList& problems) {
  std::vector<Dimension> dimensions;
  for (const auto& member : object) {
    std::string name(view(member.key()));
    if (inside_branch && name == "_name") continue;
    const std::string place = key + "." + name;
    if (std::optional<Dimension> dimension = read_dimension(std::move(name), member.value(), place, problems))
      dimensions.push_back(std::move(*dimension));
  }
  return dimensions;
}

// ---- writing ----

NNI_INLINE void append_dimension(std::string& text, const Dimension& dimension) {
  append_json_string(text, dimension.name);
  text += R"(:{"_type":")";
  text += to_string(dimension.type);
  text += R"(","_value":[)";
  const char* separator = "";
  for (const double value : dimension.values) {
    text += separator;
    if (dimension.type == DimensionType::randint)
      append_json_integer(text, static_cast<std::int64_t>(value));
    else
      append_json_number(text, value);
    separator = ",";
  }
  for (const ChoiceOption& option : dimension.options) {
    text += separator;
    separator = ",";
    if (!option.is_branch()) {
      text += option.text();
      continue;
    }
    text += R"({"_name":)" + option.text();
    for (const Dimension& inner : option.dimensions()) {
      text += ',';
      append_dimension(text, inner);
    }
    text += '}';
  }
  text += "]}";
}

}  // namespace detail::space

}  // namespace nni
