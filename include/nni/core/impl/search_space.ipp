#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <boost/json.hpp>

#include <nni/core/search_space.hpp>

namespace nni {

namespace detail {

/// Largest integer up to which a double counts without gaps.
inline constexpr double exact_limit = 0x1p53;

// ---- checking ----

NNI_INLINE void check_dimensions(const std::vector<Dimension>& dimensions, const std::string& key, ProblemList& problems);

NNI_INLINE bool check_numbers(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  const bool bell = is_normal(dimension.type);
  const char* const names[] = {bell ? "mu" : "min", bell ? "sigma" : "max", "q"};
  bool good = true;
  for (std::size_t index = 0; index < dimension.values.size(); ++index) {
    if (std::isfinite(dimension.values[index])) continue;
    problems.add(key + "." + names[index], "is " + to_json_text(dimension.values[index]) + ", but must be a finite number");
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
                                     (integer ? "; max itself is never taken" : ""));
    if (is_logarithmic(dimension.type) && !(first > 0.0))
      problems.add(key + ".min", "is " + to_json_text(first) + ", but must be greater than 0, because " +
                                     std::string(to_string(dimension.type)) + " takes its logarithm");
  }
  if (is_quantised(dimension.type) && !(dimension.values[2] > 0.0))
    problems.add(key + ".q", "is " + to_json_text(dimension.values[2]) + ", but must be greater than 0");
}

NNI_INLINE void check_choice(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  if (dimension.options.empty()) {
    problems.add(key, "is a choice without options; give at least one");
    return;
  }
  const bool branches = dimension.options.front().is_branch();
  std::set<std::string_view> names;
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
    if (!branches) continue;
    if (!names.insert(option.name()).second)
      problems.add(place, "is a second branch named \"" + option.name() + "\"; give every branch a name of its own");
    check_dimensions(option.dimensions(), key + "." + option.name(), problems);
    for (const Dimension& inner : option.dimensions())
      if (inner.name == "_name")
        problems.add(key + "." + option.name() + "._name", "is the key that holds the branch; give the dimension another name");
  }
}

NNI_INLINE void check_dimension(const Dimension& dimension, const std::string& key, ProblemList& problems) {
  if (dimension.type == DimensionType::choice) check_choice(dimension, key, problems);
  else check_range(dimension, key, problems);
}

NNI_INLINE void check_dimensions(const std::vector<Dimension>& dimensions, const std::string& key, ProblemList& problems) {
  std::set<std::string_view> names;
  for (const Dimension& dimension : dimensions) {
    const std::string place = key + "." + dimension.name;
    if (dimension.name.empty()) problems.add(key, "has a dimension without a name");
    else if (!names.insert(dimension.name).second)
      problems.add(place, "is there twice; give every dimension a name of its own");
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

NNI_INLINE std::vector<Dimension> read_dimensions(const boost::json::object& object, const std::string& key, bool inside_branch,
                                                  ProblemList& problems);

NNI_INLINE std::optional<ChoiceOption> read_option(const boost::json::value& value, const std::string& key,
                                                   const std::string& place, ProblemList& problems) {
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
  problems.add(place, "is " + shown(value) + "; an option is a number, a string, true, false, or an object with a \"_name\"");
  return std::nullopt;
}

NNI_INLINE std::optional<Dimension> read_choice(std::string name, const boost::json::array& values, const std::string& key,
                                                ProblemList& problems) {
  std::vector<ChoiceOption> options;
  for (std::size_t index = 0; index < values.size(); ++index) {
    const std::string place = key + "._value[" + std::to_string(index) + "]";
    if (std::optional<ChoiceOption> option = read_option(values[index], key, place, problems))
      options.push_back(std::move(*option));
  }
  // What is left may be empty only because every option was refused already.
  if (options.empty() && !values.empty()) return std::nullopt;
  return Dimension(std::move(name), std::move(options));
}

NNI_INLINE std::optional<Dimension> read_range(std::string name, DimensionType type, const boost::json::array& values,
                                               const std::string& key, ProblemList& problems) {
  const std::string form = std::string(is_normal(type) ? "[mu, sigma" : "[min, max") + (is_quantised(type) ? ", q]" : "]");
  const std::size_t wanted = is_quantised(type) ? 3 : 2;
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

NNI_INLINE std::optional<Dimension> read_dimension(std::string name, const boost::json::value& spec, const std::string& key,
                                                   ProblemList& problems) {
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
    if (!type) problems.add(key + "._type", "is " + shown(*type_name) + ", but must be " + std::string(dimension_types));
  }
  if (!value) problems.add(key + "._value", "is missing; give a list");
  else if (!value->is_array()) problems.add(key + "._value", "is " + shown(*value) + ", but must be a list");
  if (!type || !value || !value->is_array()) return std::nullopt;
  if (*type == DimensionType::choice) return read_choice(std::move(name), value->get_array(), key, problems);
  return read_range(std::move(name), *type, value->get_array(), key, problems);
}

NNI_INLINE std::vector<Dimension> read_dimensions(const boost::json::object& object, const std::string& key, bool inside_branch,
                                                  ProblemList& problems) {
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
    if (dimension.type == DimensionType::randint) append_json_integer(text, static_cast<std::int64_t>(value));
    else append_json_number(text, value);
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

// ---- flattening ----

// Products of sizes; 0 stands for infinite and for more than doubles can count.
NNI_INLINE std::uint64_t size_product(std::uint64_t a, std::uint64_t b) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  return product > exact_limit ? 0 : a * b;
}

NNI_INLINE void set_numbers(Axis& axis, const std::vector<double>& values) {
  if (axis.type == DimensionType::randint) {
    axis.low = axis.min = values[0];
    axis.high = axis.max = values[1] - 1.0;
    axis.count = static_cast<std::uint64_t>(values[1] - values[0]);
    return;
  }
  if (is_quantised(axis.type)) axis.q = values[2];
  if (is_normal(axis.type)) {
    axis.low = values[0];
    axis.high = values[1];
    axis.min = is_logarithmic(axis.type) ? 0.0 : -std::numeric_limits<double>::infinity();
    axis.max = std::numeric_limits<double>::infinity();
    return;
  }
  axis.min = values[0];
  axis.max = values[1];
  axis.low = is_logarithmic(axis.type) ? std::log(axis.min) : axis.min;
  axis.high = is_logarithmic(axis.type) ? std::log(axis.max) : axis.max;
  if (axis.q > 0.0) {
    const double count = std::nearbyint(axis.max / axis.q) - std::nearbyint(axis.min / axis.q) + 1.0;
    if (count <= exact_limit) axis.count = static_cast<std::uint64_t>(count);
  }
}

NNI_INLINE std::uint64_t flatten(const std::vector<Dimension>& dimensions, const std::string& prefix, std::uint32_t parent,
                                 std::uint32_t branch, std::vector<Axis>& axes) {
  std::uint64_t size = 1;
  for (const Dimension& dimension : dimensions) {
    const std::size_t at = axes.size();
    Axis axis;
    axis.name = dimension.name;
    axis.path = prefix + dimension.name;
    append_json_string(axis.key, axis.name);
    axis.key += ':';
    axis.type = dimension.type;
    axis.parent = parent;
    axis.branch = branch;
    if (dimension.type == DimensionType::choice) {
      axis.count = dimension.options.size();
      axis.nested = dimension.options.front().is_branch();
      axis.max = static_cast<double>(axis.count - 1);
      for (const ChoiceOption& option : dimension.options) {
        axis.options.push_back(option.text());
        axis.numbers.push_back(option.number().value_or(std::numeric_limits<double>::quiet_NaN()));
      }
    } else {
      set_numbers(axis, dimension.values);
    }
    axes.push_back(std::move(axis));
    std::uint64_t configurations = axes[at].count;
    if (axes[at].nested) {
      configurations = 0;
      bool finite = true;
      for (std::uint32_t index = 0; index < dimension.options.size(); ++index) {
        const std::uint64_t inner = flatten(dimension.options[index].dimensions(), axes[at].path + "/",
                                            static_cast<std::uint32_t>(at), index, axes);
        finite = finite && inner != 0;
        configurations += inner;
      }
      if (!finite || static_cast<double>(configurations) > exact_limit) configurations = 0;
    }
    axes[at].configurations = configurations;
    axes[at].end = static_cast<std::uint32_t>(axes.size());
    size = size_product(size, configurations);
  }
  return size;
}

/// The number of configurations of one branch of a choice.
NNI_INLINE std::uint64_t branch_size(const std::vector<Axis>& axes, std::size_t choice, std::uint32_t branch) {
  std::uint64_t size = 1;
  for (std::size_t at = choice + 1; at < axes[choice].end; at = axes[at].end)
    if (axes[at].branch == branch) size *= axes[at].configurations;
  return size;
}

// The three walks below visit the axes from `at` to `end` that belong to one branch, and what depends on them.

NNI_INLINE void unrank(const std::vector<Axis>& axes, std::size_t at, std::size_t end, std::uint32_t branch, std::uint64_t index,
                       Point& point) {
  for (; at < end; at = axes[at].end) {
    const Axis& axis = axes[at];
    if (axis.branch != branch) continue;
    std::uint64_t own = index % axis.configurations;
    index /= axis.configurations;
    if (!axis.nested) {
      point[at] = axis.nth_value(own);
      continue;
    }
    std::uint32_t option = 0;
    for (std::uint64_t size = branch_size(axes, at, 0); own >= size; size = branch_size(axes, at, ++option)) own -= size;
    point[at] = option;
    unrank(axes, at + 1, axis.end, option, own, point);
  }
}

NNI_INLINE std::uint64_t rank(const std::vector<Axis>& axes, std::size_t at, std::size_t end, std::uint32_t branch,
                              const Point& point) {
  std::uint64_t index = 0;
  std::uint64_t unit = 1;
  for (; at < end; at = axes[at].end) {
    const Axis& axis = axes[at];
    if (axis.branch != branch) continue;
    std::uint64_t own = axis.index_of(point[at]);
    if (axis.nested) {
      const auto chosen = static_cast<std::uint32_t>(own);
      own = rank(axes, at + 1, axis.end, chosen, point);
      for (std::uint32_t option = 0; option < chosen; ++option) own += branch_size(axes, at, option);
    }
    index += unit * own;
    unit *= axis.configurations;
  }
  return index;
}

NNI_INLINE void append_values(std::string& text, const std::vector<Axis>& axes, std::size_t at, std::size_t end, bool first,
                              const Point& point) {
  for (; at < end; at = axes[at].end) {
    const Axis& axis = axes[at];
    const double value = point[at];
    if (std::isnan(value)) continue;
    if (!first) text += ',';
    first = false;
    text += axis.key;
    if (axis.type == DimensionType::randint) {
      append_json_integer(text, static_cast<std::int64_t>(value));
    } else if (axis.type != DimensionType::choice) {
      append_json_number(text, value);
    } else if (!axis.nested) {
      text += axis.options[static_cast<std::size_t>(value)];
    } else {
      text += R"({"_name":)";
      text += axis.options[static_cast<std::size_t>(value)];
      append_values(text, axes, at + 1, axis.end, false, point);
      text += '}';
    }
  }
}

NNI_INLINE std::optional<double> option_index(const Axis& axis, const boost::json::value& value) {
  if (value.is_number()) {
    const auto found = std::find(axis.numbers.begin(), axis.numbers.end(), value.to_number<double>());
    if (found == axis.numbers.end()) return std::nullopt;
    return static_cast<double>(found - axis.numbers.begin());
  }
  const auto found = std::find(axis.options.begin(), axis.options.end(), to_json_text(value));
  if (found == axis.options.end()) return std::nullopt;
  return static_cast<double>(found - axis.options.begin());
}

NNI_INLINE bool read_values(const boost::json::object& object, const std::vector<Axis>& axes, std::size_t at, std::size_t end,
                            std::uint32_t branch, Point& point) {
  for (; at < end; at = axes[at].end) {
    const Axis& axis = axes[at];
    if (axis.branch != branch) continue;
    const boost::json::value* value = object.if_contains(axis.name);
    if (!value) return false;
    if (axis.type != DimensionType::choice) {
      if (!value->is_number()) return false;
      point[at] = value->to_number<double>();
      if (!axis.accepts(point[at])) return false;
      continue;
    }
    const boost::json::object* inner = axis.nested ? value->if_object() : nullptr;
    if (axis.nested) value = inner ? inner->if_contains("_name") : nullptr;
    if (!value) return false;
    const std::optional<double> index = option_index(axis, *value);
    if (!index) return false;
    point[at] = *index;
    if (inner && !read_values(*inner, axes, at + 1, axis.end, static_cast<std::uint32_t>(*index), point)) return false;
  }
  return true;
}

}  // namespace detail

NNI_INLINE Dimension::Dimension(std::string key, DimensionType kind, std::vector<double> numbers)
    : name(std::move(key)), type(kind), values(std::move(numbers)) {}

NNI_INLINE Dimension::Dimension(std::string key, std::vector<ChoiceOption> alternatives)
    : name(std::move(key)), type(DimensionType::choice), options(std::move(alternatives)) {}

NNI_INLINE Dimension uniform(std::string name, double min, double max) {
  return Dimension(std::move(name), DimensionType::uniform, {min, max});
}

NNI_INLINE Dimension quniform(std::string name, double min, double max, double q) {
  return Dimension(std::move(name), DimensionType::quniform, {min, max, q});
}

NNI_INLINE Dimension loguniform(std::string name, double min, double max) {
  return Dimension(std::move(name), DimensionType::loguniform, {min, max});
}

NNI_INLINE Dimension qloguniform(std::string name, double min, double max, double q) {
  return Dimension(std::move(name), DimensionType::qloguniform, {min, max, q});
}

NNI_INLINE Dimension randint(std::string name, std::int64_t min, std::int64_t max) {
  return Dimension(std::move(name), DimensionType::randint, {static_cast<double>(min), static_cast<double>(max)});
}

NNI_INLINE Dimension normal(std::string name, double mu, double sigma) {
  return Dimension(std::move(name), DimensionType::normal, {mu, sigma});
}

NNI_INLINE Dimension qnormal(std::string name, double mu, double sigma, double q) {
  return Dimension(std::move(name), DimensionType::qnormal, {mu, sigma, q});
}

NNI_INLINE Dimension lognormal(std::string name, double mu, double sigma) {
  return Dimension(std::move(name), DimensionType::lognormal, {mu, sigma});
}

NNI_INLINE Dimension qlognormal(std::string name, double mu, double sigma, double q) {
  return Dimension(std::move(name), DimensionType::qlognormal, {mu, sigma, q});
}

NNI_INLINE Dimension choice(std::string name, std::initializer_list<ChoiceOption> options) {
  return Dimension(std::move(name), std::vector<ChoiceOption>(options));
}

NNI_INLINE ChoiceOption branch(std::string name, std::vector<Dimension> dimensions) {
  return ChoiceOption(std::move(name), std::move(dimensions));
}

NNI_INLINE SearchSpace::SearchSpace(std::initializer_list<Dimension> dimensions)
    : SearchSpace(std::vector<Dimension>(dimensions)) {}

NNI_INLINE SearchSpace::SearchSpace(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {
  ProblemList problems;
  detail::check_dimensions(dimensions_, "space", problems);
  problems.throw_if_any();
  const std::uint64_t size = detail::flatten(dimensions_, "", Axis::no_parent, 0, axes_);
  size_ = size == 0 ? std::nullopt : std::optional(size);
}

NNI_INLINE SearchSpace SearchSpace::from_json(const boost::json::value& value, std::string_view key) {
  const std::string place(key);
  const boost::json::object* object = value.if_object();
  if (!object)
    throw config_error(place, "is " + detail::shown(value) + ", but must be an object: {\"name\": {\"_type\": ..., \"_value\": [...]}}");
  ProblemList problems;
  std::vector<Dimension> dimensions = detail::read_dimensions(*object, place, false, problems);
  detail::check_dimensions(dimensions, place, problems);
  problems.throw_if_any();
  return SearchSpace(std::move(dimensions));
}

NNI_INLINE SearchSpace SearchSpace::from_json(std::string_view text, std::string_view key) {
  boost::system::error_code failure;
  const boost::json::value value = boost::json::parse({text.data(), text.size()}, failure);
  if (failure) throw config_error(std::string(key), "is not JSON: " + failure.message());
  return from_json(value, key);
}

NNI_INLINE std::string SearchSpace::to_json() const {
  std::string text;
  for (const Dimension& dimension : dimensions_) {
    text += text.empty() ? '{' : ',';
    detail::append_dimension(text, dimension);
  }
  text += text.empty() ? "{}" : "}";
  return text;
}

NNI_INLINE void SearchSpace::point_at(std::span<const double> positions, Point& into) const {
  into.resize(axes_.size());
  for (std::size_t at = 0; at < axes_.size(); ++at) {
    const Axis& axis = axes_[at];
    const bool active = axis.parent == Axis::no_parent || into[axis.parent] == static_cast<double>(axis.branch);
    into[at] = active ? axis.value_at(positions[at]) : inactive;
  }
}

NNI_INLINE Point SearchSpace::configuration(std::uint64_t index) const {
  Point point(axes_.size(), inactive);
  detail::unrank(axes_, 0, axes_.size(), 0, index, point);
  return point;
}

NNI_INLINE std::uint64_t SearchSpace::index_of(const Point& point) const {
  return detail::rank(axes_, 0, axes_.size(), 0, point);
}

NNI_INLINE Parameters SearchSpace::to_parameters(const Point& point) const {
  std::string text;
  text.reserve(24 * axes_.size() + 8);
  text += '{';
  detail::append_values(text, axes_, 0, axes_.size(), true, point);
  text += '}';
  return Parameters(std::move(text));
}

NNI_INLINE std::optional<Point> SearchSpace::to_point(const Parameters& parameters) const {
  boost::system::error_code failure;
  const boost::json::value value = boost::json::parse(parameters.text(), failure);
  if (failure || !value.is_object()) return std::nullopt;
  Point point(axes_.size(), inactive);
  if (!detail::read_values(value.get_object(), axes_, 0, axes_.size(), 0, point)) return std::nullopt;
  return point;
}

}  // namespace nni
