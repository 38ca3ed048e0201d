#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/fwd.hpp>

#include <nni/core/error.hpp>
#include <nni/core/json.hpp>
#include <nni/core/parameters.hpp>
#include <nni/space/axis.hpp>

namespace nni {

class ChoiceOption;

/// A dimension of a search space as the user specifies it. Made by `uniform`, `choice` and the other functions below.
///
/// Not validated here: `SearchSpace` reports all problems at once.
class Dimension {
 public:
  /// @param key      name of the parameter
  /// @param kind     any kind but `choice`
  /// @param numbers  as in NNI's `_value`
  Dimension(std::string key, DimensionType kind, std::vector<double> numbers);
  /// Creates a choice.
  /// @param key           name of the parameter
  /// @param alternatives  its options
  Dimension(std::string key, std::vector<ChoiceOption> alternatives);

  std::string name;                   ///< name of the parameter
  DimensionType type;                 ///< kind of distribution
  std::vector<double> values;         ///< as in NNI's `_value`: min, max, q, or mu, sigma, q; empty for a choice
  std::vector<ChoiceOption> options;  ///< only for a choice
};

/// An option of a choice: a number, a string, a boolean, or a branch with dimensions of its own.
class ChoiceOption {
 public:
  /// Creates an integer or a boolean.
  template <std::integral I>
  ChoiceOption(I value) {  // NOLINT: options are written as plain values
    if constexpr (std::same_as<I, bool>) {
      text_ = value ? "true" : "false";
    } else {
      text_ = std::to_string(value);
      number_ = static_cast<double>(value);
    }
  }
  /// Creates a real number.
  template <std::floating_point F>
  ChoiceOption(F value)
      : text_(to_json_text(static_cast<double>(value))), number_(static_cast<double>(value)) {}  // NOLINT
  /// Creates a string.
  ChoiceOption(std::string_view value) { append_json_string(text_, value); }  // NOLINT
  /// Creates a string.
  ChoiceOption(const char* value) : ChoiceOption(std::string_view(value)) {}  // NOLINT
  /// Creates a string.
  ChoiceOption(const std::string& value) : ChoiceOption(std::string_view(value)) {}  // NOLINT

  /// Creates the branch `name` with its own `dimensions`, see `nni::branch`.
  ChoiceOption(std::string name, std::vector<Dimension> dimensions)
      : name_(std::move(name)), dimensions_(std::move(dimensions)), branch_(true) {
    append_json_string(text_, name_);
  }

  /// Returns the option as JSON, for a branch its name as JSON.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  /// Returns the option as a number, nothing for other types.
  [[nodiscard]] std::optional<double> number() const noexcept { return number_; }

  /// Returns true for an option with dimensions of its own.
  [[nodiscard]] bool is_branch() const noexcept { return branch_; }
  /// Returns the name of a branch; empty for other options.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns the dimensions of a branch; none for other options.
  [[nodiscard]] const std::vector<Dimension>& dimensions() const noexcept { return dimensions_; }

 private:
  std::string text_;
  std::optional<double> number_;
  std::string name_;
  std::vector<Dimension> dimensions_;
  bool branch_ = false;
};

// All numbers of a dimension are finite, `min` < `max`, `q` > 0 and `sigma` > 0; the constructor of `SearchSpace` reports
// violations. Source of all ten: NNI 3.0, search space types.

/// Returns the dimension `name`: a real number, uniform in [min, max); `min` < `max`.
[[nodiscard]] Dimension uniform(std::string name, double min, double max);

/// Returns the dimension `name`: a multiple of q, or a limit, in [min, max]; `min` < `max`, `q` > 0. The value is a real
/// number: 16.0, even for q = 1.
[[nodiscard]] Dimension quniform(std::string name, double min, double max, double q);

/// Returns the dimension `name`: a real number in [min, max) whose logarithm is uniform, for instance a learning
/// rate; 0 < `min` < `max`.
[[nodiscard]] Dimension loguniform(std::string name, double min, double max);

/// Returns the dimension `name`: like `loguniform`, rounded to multiples of q, within [min, max]; `min` > 0, `q` > 0.
[[nodiscard]] Dimension qloguniform(std::string name, double min, double max, double q);

/// Returns the dimension `name`: an integer in [min, max), `max` excluded. Both lie between -2^53 and 2^53.
[[nodiscard]] Dimension randint(std::string name, std::int64_t min, std::int64_t max);

/// Returns the dimension `name`: a normal number with mean `mu` and standard deviation `sigma` > 0; unbounded.
[[nodiscard]] Dimension normal(std::string name, double mu, double sigma);

/// Returns the dimension `name`: like `normal` with `mu` and `sigma`, rounded to multiples of `q` > 0.
[[nodiscard]] Dimension qnormal(std::string name, double mu, double sigma, double q);

/// Returns the dimension `name`: a positive number whose natural logarithm is normal with mean `mu` and standard
/// deviation `sigma` > 0.
[[nodiscard]] Dimension lognormal(std::string name, double mu, double sigma);

/// Returns the dimension `name`: like `lognormal` with `mu` and `sigma`, rounded to multiples of `q` > 0; may be 0.
[[nodiscard]] Dimension qlognormal(std::string name, double mu, double sigma, double q);

/// Returns the dimension of a choice between values or between branches.
///
/// @param name     key of the parameter
/// @param options  at least one: numbers, strings or booleans in any mixture, `{16, 32, 64}`, or branches only, with
///                 distinct names
[[nodiscard]] Dimension choice(std::string name, std::initializer_list<ChoiceOption> options);

/// The same for a container or another range of options.
template <class R>
  requires requires(R& options) {
    std::end(options);
    requires std::constructible_from<ChoiceOption, decltype(*std::begin(options))>;
  }
[[nodiscard]] Dimension choice(std::string name, R&& options) {
  std::vector<ChoiceOption> all;
  for (auto&& option : options) all.emplace_back(option);
  return Dimension(std::move(name), std::move(all));
}

/// Returns an option of a choice with dimensions of its own, which are active only where this option is chosen.
///
/// The trial receives `{"kind": {"_name": "conv", "width": 3}}` and reads `kind/_name` and `kind/width`.
///
/// @param name        name of the option
/// @param dimensions  dimensions within this option; may be empty
[[nodiscard]] ChoiceOption branch(std::string name, std::vector<Dimension> dimensions = {});

/// A search space: named dimensions, some of them conditional.
///
/// A value type: validated at construction, immutable, cheap enough to copy.
class SearchSpace {
 public:
  /// Creates an empty space: every trial gets `{}`.
  SearchSpace() = default;

  /// @param dimensions    with distinct names, in the order of the parameters
  /// @throws ConfigError  with all problems: keys such as `space.lr.max`, the value, and what is accepted
  SearchSpace(std::initializer_list<Dimension> dimensions);

  /// The same for dimensions that were collected at run time.
  explicit SearchSpace(std::vector<Dimension> dimensions);

  /// Parses NNI's format: `{"lr": {"_type": "loguniform", "_value": [0.0001, 0.1]}}`.
  ///
  /// @param value  the object
  /// @param key    its name in error messages
  /// @throws ConfigError  with all problems
  /// Source: NNI 3.0, search space; nested choices are validated as well.
  [[nodiscard]] static SearchSpace from_json(const boost::json::value& value, std::string_view key = "space");

  /// The same for JSON text.
  [[nodiscard]] static SearchSpace from_json(std::string_view text, std::string_view key = "space");
  /// The same for JSON text.
  [[nodiscard]] static SearchSpace from_json(const char* text, std::string_view key = "space") {
    return from_json(std::string_view(text), key);
  }
  /// The same for JSON text.
  [[nodiscard]] static SearchSpace from_json(const std::string& text, std::string_view key = "space") {
    return from_json(std::string_view(text), key);
  }

  /// Returns NNI's format as JSON text, from which `from_json` makes an equal space.
  [[nodiscard]] std::string to_json() const;

  /// Returns the dimensions as specified.
  [[nodiscard]] const std::vector<Dimension>& dimensions() const noexcept { return dimensions_; }

  /// Returns all dimensions flattened: a choice precedes the axes of its branches.
  [[nodiscard]] const std::vector<Axis>& axes() const noexcept { return axes_; }

  /// Returns true if there are no dimensions.
  [[nodiscard]] bool empty() const noexcept { return axes_.empty(); }

  /// Returns the number of different configurations; nothing if it is infinite or above 2^53.
  [[nodiscard]] std::optional<std::uint64_t> size() const noexcept { return size_; }

  /// Computes the configuration at one position per axis; ignores positions of inactive axes.
  ///
  /// @param positions  in [0, 1], as many as there are axes
  /// @param into       receives the values
  void point_at(std::span<const double> positions, Point& into) const;

  /// Returns the values of configuration number `index`, below `size()`. Requires a finite `size()`.
  [[nodiscard]] Point configuration(std::uint64_t index) const;

  /// Returns the index of a configuration, below `size()`: the inverse of `configuration`.
  [[nodiscard]] std::uint64_t index_of(const Point& point) const;

  /// Returns the parameters of a trial for a point: one value per axis, NaN for inactive axes.
  [[nodiscard]] Parameters to_parameters(const Point& point) const;

  /// Returns the point of some parameters: the inverse of `to_parameters`; nothing if they do not fit this space.
  [[nodiscard]] std::optional<Point> to_point(const Parameters& parameters) const;

  /// Returns true if both have the same dimensions in the same order.
  friend bool operator==(const SearchSpace& a, const SearchSpace& b) { return a.to_json() == b.to_json(); }

 private:
  std::vector<Dimension> dimensions_;
  std::vector<Axis> axes_;
  std::optional<std::uint64_t> size_ = 1;
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/space/search_space_inl.hpp>
#endif
