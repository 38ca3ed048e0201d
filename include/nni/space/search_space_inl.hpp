#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/json.hpp>

#include <nni/space/search_space.hpp>
#include <nni/space/search_space_json_inl.hpp>

namespace nni {

namespace detail::space {

// ---- flattening ----

// Products of sizes; 0 means infinite or above 2^53, beyond which doubles are not exact.
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
  if (is_quantized(axis.type)) axis.q = values[2];
  if (is_normal(axis.type)) {
    axis.low = values[0];
    axis.high = values[1];
    // Unbounded, except that JSON cannot represent infinities. `low` and `high` hold mu and sigma.
    axis.min = is_logarithmic(axis.type) ? 0.0 : std::numeric_limits<double>::lowest();
    axis.max = std::numeric_limits<double>::max();
    return;
  }
  axis.min = values[0];
  axis.max = values[1];
  axis.low = is_logarithmic(axis.type) ? std::log(axis.min) : axis.min;
  axis.high = is_logarithmic(axis.type) ? std::log(axis.max) : axis.max;
  if (axis.q > 0.0) {
    // The number of multiples of q; the limits themselves count like the multiples that they replace.
    const double count = std::nearbyint(axis.max / axis.q) - std::nearbyint(axis.min / axis.q) + 1.0;
    if (count <= exact_limit) axis.count = static_cast<std::uint64_t>(count);
  }
}

// Appends the axes of `dimensions` in depth-first order, so that each axis is followed by all axes that depend on it, up to
// its `end`. Returns the number of configurations.
NNI_INLINE std::uint64_t flatten(const std::vector<Dimension>& dimensions, const std::string& prefix,
                                 std::uint32_t parent, std::uint32_t branch, std::vector<Axis>& axes) {
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
    // The branches of a choice exclude each other, so their sizes add up; independent dimensions multiply.
    std::uint64_t configurations = axes[at].count;
    if (axes[at].nested) {
      configurations = 0;
      bool finite = true;
      for (std::uint32_t index = 0; index < dimension.options.size(); ++index) {
        const std::uint64_t inner = flatten(
            dimension.options[index].dimensions(), axes[at].path + "/", static_cast<std::uint32_t>(at), index, axes);
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

/// Returns the number of configurations of one branch of a choice.
NNI_INLINE std::uint64_t branch_size(const std::vector<Axis>& axes, std::size_t choice, std::uint32_t branch) {
  std::uint64_t size = 1;
  for (std::size_t at = choice + 1; at < axes[choice].end; at = axes[at].end)
    if (axes[at].branch == branch) size *= axes[at].configurations;
  return size;
}

// The three functions below visit the axes from `at` to `end` that belong to one branch, and the axes that depend on them.

// A mixed-radix number: the first axis is the least significant digit. The values of a choice between branches are
// consecutive ranges of indexes, one per branch.
NNI_INLINE void unrank(const std::vector<Axis>& axes, std::size_t at, std::size_t end, std::uint32_t branch,
                       std::uint64_t index, Point& point) {
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
    for (std::uint64_t size = branch_size(axes, at, 0); own >= size; size = branch_size(axes, at, ++option))
      own -= size;
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

NNI_INLINE void append_values(std::string& text, const std::vector<Axis>& axes, std::size_t at, std::size_t end,
                              bool first, const Point& point) {
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
  // Compared as numbers: Python may write 16 as 16.0.
  if (value.is_number()) {
    const auto found = std::find(axis.numbers.begin(), axis.numbers.end(), value.to_number<double>());
    if (found == axis.numbers.end()) return std::nullopt;
    return static_cast<double>(found - axis.numbers.begin());
  }
  const auto found = std::find(axis.options.begin(), axis.options.end(), to_json_text(value));
  if (found == axis.options.end()) return std::nullopt;
  return static_cast<double>(found - axis.options.begin());
}

// Ignores members that are no dimensions: parameters of a wider space fit a narrower one.
NNI_INLINE bool read_values(const boost::json::object& object, const std::vector<Axis>& axes, std::size_t at,
                            std::size_t end, std::uint32_t branch, Point& point) {
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

}  // namespace detail::space

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
  detail::space::check_dimensions(dimensions_, "space", problems);
  problems.throw_if_any();
  const std::uint64_t size = detail::space::flatten(dimensions_, "", Axis::no_parent, 0, axes_);
  size_ = size == 0 ? std::nullopt : std::optional(size);
}

NNI_INLINE SearchSpace SearchSpace::from_json(const boost::json::value& value, std::string_view key) {
  const std::string place(key);
  const boost::json::object* object = value.if_object();
  if (!object)
    throw config_error(place, "is " + detail::space::shown(value) +
                                  ", but must be an object: {\"name\": {\"_type\": ..., \"_value\": [...]}}");
  ProblemList problems;
  std::vector<Dimension> dimensions = detail::space::read_dimensions(*object, place, false, problems);
  detail::space::check_dimensions(dimensions, place, problems);
  problems.throw_if_any();
  return SearchSpace(std::move(dimensions));
}

NNI_INLINE SearchSpace SearchSpace::from_json(std::string_view text, std::string_view key) {
  boost::system::error_code failure;
  const boost::json::value value = parse_json(text, failure);
  if (failure) throw config_error(std::string(key), "is not JSON: " + failure.message());
  return from_json(value, key);
}

NNI_INLINE std::string SearchSpace::to_json() const {
  std::string text;
  for (const Dimension& dimension : dimensions_) {
    text += text.empty() ? '{' : ',';
    detail::space::append_dimension(text, dimension);
  }
  text += text.empty() ? "{}" : "}";
  return text;
}

NNI_INLINE void SearchSpace::point_at(std::span<const double> positions, Point& into) const {
  into.resize(axes_.size());
  for (std::size_t at = 0; at < axes_.size(); ++at) {
    const Axis& axis = axes_[at];
    // Parents precede their axes. The value of an inactive parent is NaN, which equals no branch.
    const bool active = axis.parent == Axis::no_parent || into[axis.parent] == static_cast<double>(axis.branch);
    into[at] = active ? axis.value_at(positions[at]) : inactive;
  }
}

NNI_INLINE Point SearchSpace::configuration(std::uint64_t index) const {
  Point point(axes_.size(), inactive);
  detail::space::unrank(axes_, 0, axes_.size(), 0, index, point);
  return point;
}

NNI_INLINE std::uint64_t SearchSpace::index_of(const Point& point) const {
  return detail::space::rank(axes_, 0, axes_.size(), 0, point);
}

NNI_INLINE Parameters SearchSpace::to_parameters(const Point& point) const {
  std::string text;
  text.reserve(24 * axes_.size() + 8);  // about the length of a key and a number
  text += '{';
  detail::space::append_values(text, axes_, 0, axes_.size(), true, point);
  text += '}';
  return Parameters(std::move(text));
}

NNI_INLINE std::optional<Point> SearchSpace::to_point(const Parameters& parameters) const {
  boost::system::error_code failure;
  const boost::json::value value = parse_json(parameters.text(), failure);
  if (failure || !value.is_object()) return std::nullopt;
  Point point(axes_.size(), inactive);
  if (!detail::space::read_values(value.get_object(), axes_, 0, axes_.size(), 0, point)) return std::nullopt;
  return point;
}

}  // namespace nni
